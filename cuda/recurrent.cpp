#include "cuda/recurrent.hpp"

#include "backend/recurrent_state.hpp"
#include "core/guard.hpp"

namespace tessera::cuda {

namespace {

StateRows state_rows(const StateRun* runs, const std::uint64_t* after, std::uint64_t offset) noexcept {
  return {.runs = runs, .after = after, .offset = offset};
}

}  // namespace

Status RecurrentLayers::add(StepArena& arena, const KvLayout& layout, std::span<const backend::RowTable> rows,
                            std::span<const KvView> sequences) {
  if (!layout.has_state()) return {};
  std::size_t layer = 0;  // any recurrent layer: all have their states in the same pages
  while (layout.layers[layer].group != layout.state_group()) ++layer;
  const std::uint64_t offset = layout.layer(layer).state_offset;
  const auto page_of = [&](const std::byte* state) {
    return state == nullptr ? 0 : static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(state)) - offset;
  };
  runs_.clear();
  TESSERA_TRY(const auto after, arena.add<std::uint64_t>(rows.size()));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const backend::RowTable& at = rows[row];
    const KvView& kv = sequences[at.sequence];
    after.host[row] = 0;
    if (*kv.layout != layout) continue;
    const bool goes_on = row > 0 && rows[row - 1].sequence == at.sequence && rows[row - 1].position + 1 == at.position;
    if (!goes_on) runs_.push_back({page_of(kv.state_before(layer, at.position)), static_cast<std::uint32_t>(row), 0});
    ++runs_.back().count;
    after.host[row] = page_of(kv.state_after(layer, at.position));
  }
  TESSERA_TRY(const StateRun* const runs, arena.add<StateRun>(runs_));
  if (n_sets_ == sets_.size()) sets_.emplace_back();
  sets_[n_sets_++] = {.layout = &layout, .runs = runs, .after = after.device, .n_runs = static_cast<std::uint32_t>(runs_.size())};
  return {};
}

Status RecurrentLayers::convolve(const Device& device, const KernelTable& kernels, std::uint32_t layer, ConvolveArgs args) const {
  for (const Set& set : sets()) {
    args.states = state_rows(set.runs, set.after, set.layout->layer(layer).state_offset);
    TESSERA_TRY_STATUS(device.launch(kernels.convolve_rows, {.x = set.n_runs, .y = (args.columns + kStateThreads - 1) / kStateThreads},
                                     kStateThreads, 0, args));
  }
  return {};
}

Status RecurrentLayers::recur(const Device& device, Kernel kernel, const backend::Recurrence& how, RecurrenceArgs args) const {
  args.heads = how.heads;
  args.groups = how.groups;
  args.keys = how.keys;
  args.values = how.values;
  args.order = how.group_order;
  const auto lanes = static_cast<std::uint32_t>(backend::stripes_of(how.values) * backend::kStripe);
  for (const Set& set : sets()) {
    args.states = state_rows(set.runs, set.after, set.layout->layer(how.layer).state_offset + how.state_offset * sizeof(float));
    TESSERA_TRY_STATUS(device.launch(kernel, {.x = set.n_runs, .y = how.heads, .z = (lanes + kStateThreads - 1) / kStateThreads},
                                     kStateThreads, 0, args));
  }
  return {};
}

Status RecurrentLayers::delta_rule(const Device& device, const KernelTable& kernels, const backend::Recurrence& how, const DeviceRows& qkv,
                                   const DeviceRows& steps, const DeviceRows& betas, PrepareStateArgs vectors, float* out,
                                   std::uint32_t rows) const {
  const std::uint32_t keys = how.groups * how.keys;
  vectors.qkv = qkv.data;
  vectors.steps = steps.data;
  vectors.rates = betas.data;
  vectors.heads = how.heads;
  vectors.groups = how.groups;
  vectors.keys = how.keys;
  vectors.qkv_stride = qkv.columns;
  vectors.steps_stride = steps.columns;
  vectors.rates_stride = betas.columns;
  TESSERA_TRY_STATUS(device.launch(kernels.prepare_delta, {.x = rows}, kPrepareThreads, 0, vectors));
  return recur(device, kernels.delta_rule, how,
               {.states = {},
                .x = qkv.data,
                .decays = steps.data,
                .rates = betas.data,
                .skip = nullptr,
                .out = out,
                .x_stride = qkv.columns,
                .decays_stride = steps.columns,
                .rates_stride = betas.columns,
                .heads = 0, .groups = 0, .keys = 0, .values = 0,
                .first_key = keys,
                .first_query = 0,
                .first_value = 2 * keys,
                .order = {},
                .padding = 0});
}

Status RecurrentLayers::scan(const Device& device, const KernelTable& kernels, const backend::Recurrence& how, const DeviceRows& xbc,
                             const DeviceRows& steps, const DeviceRows& decays, PrepareStateArgs vectors, const float* skip, float* out,
                             std::uint32_t rows) const {
  const std::uint32_t x = how.heads * how.values;
  vectors.steps = steps.data;
  vectors.rates = decays.data;
  vectors.heads = how.heads;
  vectors.steps_stride = steps.columns;
  vectors.rates_stride = decays.columns;
  TESSERA_TRY_STATUS(device.launch(kernels.prepare_scan, {.x = rows}, kPrepareThreads, 0, vectors));
  return recur(device, kernels.scan_rows, how,
               {.states = {},
                .x = xbc.data,
                .decays = decays.data,
                .rates = steps.data,
                .skip = skip,
                .out = out,
                .x_stride = xbc.columns,
                .decays_stride = decays.columns,
                .rates_stride = steps.columns,
                .heads = 0, .groups = 0, .keys = 0, .values = 0,
                .first_key = x,
                .first_query = x + how.groups * how.keys,
                .first_value = 0,
                .order = {},
                .padding = 0});
}

}  // namespace tessera::cuda
