#include "cuda/attention/step_attention.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::cuda {

namespace {

// Estimates how many thread blocks of attention can be on one multiprocessor at once, as far as shared memory limits them; at least 1.
// Assumes 163 KB of shared memory, the most that one block may have on compute capability 8.0. Each block takes 1 KB more than it asks for,
// because CUDA reserves 1 KB for itself.
std::uint32_t blocks_at_once(std::uint32_t head_class, std::uint32_t query_class) noexcept {
  constexpr std::uint32_t kShared = 163 * 1024;
  return std::max(1u, kShared / (attention_shared_bytes(head_class, query_class) + 1024));
}

std::size_t place_of(std::span<const std::uint32_t> classes, std::uint32_t of) noexcept {
  return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), of) - classes.begin());
}

}  // namespace

AttentionHeads heads_of(const backend::AttentionShape& shape, const KvLayer& layer) noexcept {
  return {.kv_heads = layer.kv_heads,
          .group = shape.n_heads / layer.kv_heads,
          .value_dim = layer.value_dim,
          .window = shape.window,
          .globals = shape.globals,
          .ahead = shape.ahead};
}

const StepAttention::Planned* StepAttention::find(const AttentionHeads& heads, std::uint32_t key_dim, std::size_t kv_set) const noexcept {
  const auto plans = std::span(planned_).first(n_planned_);
  const auto same = [&](const Planned& at) { return at.heads == heads && at.key_dim == key_dim && at.kv_set == kv_set; };
  const auto at = std::ranges::find_if(plans, same);
  return at != plans.end() ? &*at : nullptr;
}

Status StepAttention::begin(const Device& device, StepArena& arena, const StepRows& rows, std::span<const backend::AttentionShape> shapes) {
  n_planned_ = 0;
  for (const backend::AttentionShape& shape : shapes) {
    for (std::size_t set = 0; set < rows.kv_sets().size(); ++set) {
      const KvLayer layer = kv_layer(*rows.kv_sets()[set].layout, shape.layer);
      const AttentionHeads heads = heads_of(shape, layer);
      if (find(heads, layer.key_dim, set) != nullptr) continue;
      if (n_planned_ == planned_.size()) planned_.emplace_back();
      Planned& at = planned_[n_planned_];
      at.heads = heads;
      at.key_dim = layer.key_dim;
      at.kv_set = set;
      TESSERA_TRY_STATUS(plan(device, arena, rows, rows.every_row(), RowsNow::all, at));
      if (rows.drops_rows()) TESSERA_TRY_STATUS(plan(device, arena, rows, rows.wanted(), RowsNow::wanted, at));
      ++n_planned_;
    }
  }
  return {};
}

// Plans the attention of `rows`, and adds the tiles to the step's tables.
Status StepAttention::plan(const Device& device, StepArena& arena, const StepRows& step, std::span<const std::uint32_t> rows, RowsNow now,
                           Planned& at) {
  sequences_.clear();
  positions_.clear();
  ends_.clear();
  for (const std::uint32_t row : rows) {
    sequences_.push_back(step.sequence_in(step.kv_sets()[at.kv_set], step.rows()[row].sequence));
    positions_.push_back(step.rows()[row].position);
    ends_.push_back(step.rows()[row].end);
  }
  const std::uint32_t head_class = cuda::head_class(at.key_dim, at.heads.value_dim);
  const AttentionLimits limits{
      .concurrent_blocks = static_cast<std::uint32_t>(device.multiprocessors()) * blocks_at_once(head_class, kQueryClasses[0]),
      .partial_floats = partial_floats_};
  Planned::OfRows& of = at.of[static_cast<std::size_t>(now)];
  plan_attention({.sequences = sequences_, .positions = positions_, .ends = ends_}, at.heads, limits, of.plan);
  for (std::size_t i = 0; i < std::size(kQueryClasses); ++i) {
    TESSERA_TRY(of.tiles[i], arena.add<AttentionTile>(of.plan.launches[i].tiles));
  }
  return {};
}

Status StepAttention::attend(const Device& device, const KernelTable& kernels, const StepRows& rows, const Call& call) const {
  const KvSet& set = rows.kv_sets()[call.kv_set];
  const KvTables& tables = set.tables_of(call.shape.layer);
  const KvLayer layer = kv_layer(*set.layout, call.shape.layer);
  const AttentionHeads heads = heads_of(call.shape, layer);
  const Planned* const planned = find(heads, layer.key_dim, call.kv_set);
  if (planned == nullptr) {
    return detail::make_error(ErrorCode::internal, "attention of layer {} is not among those of begin()", call.shape.layer);
  }
  const Planned::OfRows& of = planned->of[static_cast<std::size_t>(rows.drops_rows() ? rows.now() : RowsNow::all)];
  const std::uint32_t head_class = cuda::head_class(layer.key_dim, layer.value_dim);
  const auto& attend = kernels.kv[kv_index(layer.dtype)].attend[place_of(kHeadClasses, head_class)];
  for (std::size_t c = 0; c < std::size(kQueryClasses); ++c) {
    const AttentionLaunch& run = of.plan.launches[c];
    if (run.tiles.empty()) continue;
    const auto tiles = static_cast<std::uint32_t>(run.tiles.size());
    TESSERA_TRY_STATUS(device.launch(attend[c], {.x = tiles, .y = layer.kv_heads, .z = run.splits}, kAttentionThreads,
                                     attention_shared_bytes(head_class, kQueryClasses[c]),
                                     AttentionArgs{.layer = layer,
                                                   .tables = tables,
                                                   .tiles = of.tiles[c],
                                                   .q = call.q,
                                                   .out = call.out,
                                                   .partials = partials_,
                                                   .window = heads.window,
                                                   .group = heads.group,
                                                   .scale = call.shape.scale,
                                                   .sinks = call.sinks,
                                                   .softcap = call.shape.softcap,
                                                   .globals = heads.globals,
                                                   .ahead = heads.ahead}));
    if (run.splits == 1) continue;
    TESSERA_TRY_STATUS(device.launch(kernels.attention_merge, {.x = tiles, .y = layer.kv_heads, .z = kQueryClasses[c]}, kAttentionThreads, 0,
                                     AttentionMergeArgs{.tables = tables,
                                                        .tiles = of.tiles[c],
                                                        .out = call.out,
                                                        .partials = partials_,
                                                        .window = heads.window,
                                                        .group = heads.group,
                                                        .kv_heads = layer.kv_heads,
                                                        .value_dim = layer.value_dim,
                                                        .rotates = kv::rotates(layer.dtype, kv::KeyOrValue::value) ? 1u : 0u,
                                                        .sinks = call.sinks,
                                                        .ahead = heads.ahead}));
  }
  return {};
}

}  // namespace tessera::cuda
