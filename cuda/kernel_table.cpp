#include "cuda/kernel_table.hpp"

#include <fmt/format.h>

#include "core/guard.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

namespace {

Status load_form(const Device& device, std::size_t index, KernelTable::Form& form) {
  const std::string_view name = kFormNames[index];
  for (std::size_t i = 0; i < kFewRows.size(); ++i) {
    TESSERA_TRY(form.few[i], device.kernel(fmt::format("linear_few_{}_r{}", name, kFewRows[i])));
  }
  for (std::size_t i = 0; i < kSlotRows.size(); ++i) {
    TESSERA_TRY(form.slots[i], device.kernel(fmt::format("linear_slots_{}_r{}", name, kSlotRows[i])));
  }
  TESSERA_TRY(form.unpack_rows, device.kernel(fmt::format("unpack_rows_{}", name)));
  if (is_quantised(static_cast<DeviceForm>(index))) {
    TESSERA_TRY(form.unpack_half, device.kernel(fmt::format("unpack_half_{}", name)));
  }
  return {};
}

Status load_kv(const Device& device, std::size_t index, KernelTable::Kv& kv) {
  const std::string_view name = kKvNames[index];
  TESSERA_TRY(kv.append, device.kernel(fmt::format("append_kv_{}", name)));
  TESSERA_TRY(kv.rope_append, device.kernel(fmt::format("rope_append_{}", name)));
  if (holds_latents(kKvTypes[index])) {
    TESSERA_TRY(kv.latent_append, device.kernel(fmt::format("latent_append_{}", name)));
  }
  TESSERA_TRY(kv.count_votes, device.kernel(fmt::format("count_votes_{}", name)));
  TESSERA_TRY(kv.move, device.kernel(fmt::format("move_tokens_{}", name)));
  for (std::size_t head = 0; head < std::size(kHeadClasses); ++head) {
    if (kHeadClasses[head] > kMostValues && !holds_latents(kKvTypes[index])) continue;
    for (std::size_t query = 0; query < std::size(kQueryClasses); ++query) {
      Kernel& kernel = kv.attend[head][query];
      TESSERA_TRY(kernel,
                  device.kernel(fmt::format("attention_{}_d{}_q{}", name, kHeadClasses[head], kQueryClasses[query])));
      TESSERA_TRY_STATUS(device.allow_shared(kernel, attention_shared_bytes(kHeadClasses[head], kQueryClasses[query])));
    }
  }
  return {};
}

}  // namespace

Result<KernelTable> KernelTable::load(const Device& device) {
  KernelTable table;
  for (std::size_t i = 0; i < table.forms.size(); ++i) TESSERA_TRY_STATUS(load_form(device, i, table.forms[i]));
  for (std::size_t i = 0; i < table.kv.size(); ++i) TESSERA_TRY_STATUS(load_kv(device, i, table.kv[i]));
  struct Named {
    Kernel& kernel;
    const char* name;
  };
  for (const auto& [kernel, name] :
       {Named{table.attention_merge, "attention_merge"}, Named{table.rms_norm, "rms_norm"},
        Named{table.layer_norm, "layer_norm"}, Named{table.head_norm, "head_norm"}, Named{table.rope, "rope"},
        Named{table.add_rows, "add_rows"}, Named{table.scale_rows, "scale_rows"},
        Named{table.gather_rows, "gather_rows"},
        Named{table.compact_rows, "compact_rows"}, Named{table.rows_to_half, "rows_to_half"},
        Named{table.rows_to_bf16, "rows_to_bf16"}, Named{table.finish_rows, "finish_rows"},
        Named{table.sample_tokens, "sample_tokens"}, Named{table.softcap_rows, "softcap_rows"},
        Named{table.scale_by_position, "scale_by_position"}, Named{table.weigh_rows, "weigh_rows"},
        Named{table.multiply_rows, "multiply_rows"}, Named{table.multiply_by, "multiply_by"},
        Named{table.take_columns, "take_columns"},
        Named{table.route_experts, "route_experts"}, Named{table.deal_experts, "deal_experts"},
        Named{table.sum_experts, "sum_experts"}, Named{table.convolve_rows, "convolve_rows"},
        Named{table.prepare_delta, "prepare_delta"}, Named{table.prepare_scan, "prepare_scan"},
        Named{table.low_rank_down, "low_rank_down"}, Named{table.low_rank_tokens, "low_rank_tokens"},
        Named{table.low_rank_up, "low_rank_up"}, Named{table.delta_rule, "delta_rule"}, Named{table.scan_rows, "scan_rows"}}) {
    TESSERA_TRY(kernel, device.kernel(name));
  }
  for (std::size_t i = 0; i < kActivationRows.size(); ++i) {
    const ActivationRow& row = kActivationRows[i];
    if (row.computed == Computed::refused) continue;
    TESSERA_TRY(table.activate[i], device.kernel(fmt::format("activate_{}", row.name)));
    TESSERA_TRY(table.activate_gated[i], device.kernel(fmt::format("activate_gated_{}", row.name)));
  }
  return table;
}

}  // namespace tessera::cuda
