// The table of the backend's kernels, which are looked up by name once, when the device is opened.
#pragma once

#include <array>
#include <iterator>

#include "backend/backend.hpp"
#include "cuda/driver/device.hpp"
#include "cuda/kernels/attention/attention.hpp"
#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

inline constexpr std::array<std::string_view, kDeviceForms> kFormNames = {
    "f32",           "f16",       "bf16",       "block32_4",  "block32_4_min", "block32_5",
    "block32_5_min", "block32_8", "block256_4", "block256_5", "block256_6", "open", "open_min"};
inline constexpr std::array<DType, 7> kKvTypes = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::fp8, DType::int4, DType::k8v4};
inline constexpr std::array<std::string_view, 7> kKvNames = {"f32", "f16", "bf16", "int8", "fp8", "int4", "k8v4"};
// Returns whether pages of the KV type can hold latents, where the last numbers of a key are its value. Types with a scale cannot.
[[nodiscard]] constexpr bool holds_latents(DType type) noexcept { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }
inline constexpr std::array<std::uint32_t, 4> kFewRows = {1, 2, 4, 8};  // for each linear_few kernel: the rows that it multiplies at once
inline constexpr std::array<std::uint32_t, 2> kSlotRows = {1, 4};        // the same for each linear_slots kernel

// Returns the index of a KV type in kKvTypes.
[[nodiscard]] constexpr std::size_t kv_index(DType type) noexcept {
  for (std::size_t i = 0; i < kKvTypes.size(); ++i) {
    if (kKvTypes[i] == type) return i;
  }
  return 0;  // not reached: CudaBackend::holds_kv() refuses other types
}

// The table of activation functions: one row for each ActivationKind. If `computed` is by_kernels, the CUDA kernels activate_NAME and
// activate_gated_NAME compute the function, with the row's `name` as NAME. If it is refused, models with this function are refused at load.
// If a kind has no row, the static_assert below fails.
enum class Computed : std::uint8_t { not_said, by_kernels, refused };
struct ActivationRow {
  ActivationKind kind = ActivationKind::silu;
  Computed computed = Computed::not_said;
  std::string_view name = {};
};
inline constexpr std::array<ActivationRow, kActivationKinds> kActivationRows = {{
    {ActivationKind::silu, Computed::by_kernels, "silu"},
    {ActivationKind::gelu_tanh, Computed::by_kernels, "gelu_tanh"},
    {ActivationKind::gelu_erf, Computed::by_kernels, "gelu_erf"},
    {ActivationKind::clamped_swiglu, Computed::by_kernels, "clamped_swiglu"},
    {ActivationKind::sigmoid, Computed::by_kernels, "sigmoid"},
    {ActivationKind::squared_relu, Computed::by_kernels, "squared_relu"},
    {ActivationKind::tanh, Computed::by_kernels, "tanh"},
}};
static_assert([] {
  for (std::size_t i = 0; i < kActivationRows.size(); ++i) {
    const ActivationRow& row = kActivationRows[i];
    if (static_cast<std::size_t>(row.kind) != i || row.computed == Computed::not_said) return false;
    if ((row.computed == Computed::by_kernels) == row.name.empty()) return false;
  }
  return true;
}(), "each ActivationKind has a row, in the order of the kinds, with its kernels' name or a refusal");

struct KernelTable {
  struct Form {
    std::array<Kernel, kFewRows.size()> few;
    Kernel unpack_rows;
    Kernel unpack_half;  // exists only for quantised forms
    std::array<Kernel, kSlotRows.size()> slots;
  };
  struct Kv {
    Kernel append, rope_append, move;
    Kernel count_votes;
    Kernel latent_append;  // exists only for types that hold latents
    Kernel attend[std::size(kHeadClasses)][std::size(kQueryClasses)];
  };

  std::array<Form, kDeviceForms> forms;
  std::array<Kv, kKvTypes.size()> kv;
  Kernel attention_merge;
  Kernel rms_norm, layer_norm, head_norm, rope, add_rows, scale_rows, gather_rows, compact_rows;
  Kernel rows_to_half, rows_to_bf16, finish_rows;
  Kernel sample_tokens;
  Kernel softcap_rows, scale_by_position, weigh_rows, multiply_rows, multiply_by, take_columns;
  Kernel convolve_rows, prepare_delta, prepare_scan, delta_rule, scan_rows;
  Kernel low_rank_down, low_rank_tokens, low_rank_up;
  Kernel route_experts, deal_experts, sum_experts;
  std::array<Kernel, kActivationKinds> activate, activate_gated;  // index: ActivationKind; refused kinds have none

  static Result<KernelTable> load(const Device& device);
};

}  // namespace tessera::cuda
