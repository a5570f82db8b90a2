#include "cpu/packed_matrix.hpp"

#include <algorithm>
#include <cstring>

#include <tessera/core/float16.hpp>
#include <tessera/formats/formats.hpp>

#include "cpu/vector.hpp"

namespace tessera::cpu {

namespace {

std::size_t element_bytes(DType dtype) noexcept { return dtype == DType::f32 ? 4 : 2; }

std::uint64_t panels_of(const backend::MatrixShape& shape) noexcept { return (shape.outputs + kPanel - 1) / kPanel; }

template <class T>
void pack_panels(const backend::MatrixShape& shape, std::uint64_t first, std::uint64_t count, const std::byte* rows,
                 std::byte* packed) noexcept {
  for (std::uint64_t r = 0; r < count; ++r) {
    const std::uint64_t n = first + r;
    std::byte* to = packed + ((n / kPanel) * shape.inputs * kPanel + n % kPanel) * sizeof(T);
    const std::byte* from = rows + r * shape.inputs * sizeof(T);
    for (std::uint64_t k = 0; k < shape.inputs; ++k) std::memcpy(to + k * kPanel * sizeof(T), from + k * sizeof(T), sizeof(T));
  }
}

// Decodes blocks of one row from block `k0 / block_values` on.
void decode_row(const backend::Matrix& matrix, std::uint64_t row, std::size_t k0, std::size_t depth, float* out) noexcept {
  const std::byte* blocks = matrix.data + row * row_bytes(matrix.shape);
  formats::visit(matrix.shape.dtype, [&]<class F>(std::type_identity<F>) {
    const std::byte* block = blocks + k0 / F::block_values * F::block_bytes;
    for (std::size_t k = 0; k < depth; k += F::block_values, block += F::block_bytes) F::decode(block, out + k);
  });
}

// rows [16][kDepth] -> tile [depth][16], in squares of 4 by 4. Depth is whole blocks of 32 or 256.
void transpose(const float* rows, std::size_t depth, float* out) noexcept {
  for (std::size_t k = 0; k < depth; k += 4) {
    for (std::size_t n = 0; n < kPanel; n += 4) {
      const float* from = rows + n * kDepth + k;
      const Vec4 a = load4(from), b = load4(from + kDepth), c = load4(from + 2 * kDepth), d = load4(from + 3 * kDepth);
      const Vec4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Vec4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* to = out + k * kPanel + n;
      store4(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
      store4(to + kPanel, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
      store4(to + 2 * kPanel, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      store4(to + 3 * kPanel, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
  }
}

}  // namespace

bool is_panel_form(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

std::uint64_t row_bytes(const backend::MatrixShape& shape) noexcept {
  const auto block = formats::block_of(shape.dtype);
  return block ? shape.inputs / block->values * block->bytes : 0;
}

std::uint64_t packed_bytes(const backend::MatrixShape& shape) noexcept {
  if (!is_panel_form(shape.dtype)) return shape.outputs * row_bytes(shape);
  return panels_of(shape) * kPanel * shape.inputs * element_bytes(shape.dtype);
}

void pack_rows(const backend::MatrixShape& shape, std::uint64_t first, std::uint64_t count, const std::byte* rows,
               std::byte* packed) noexcept {
  if (!is_panel_form(shape.dtype)) {
    std::memcpy(packed + first * row_bytes(shape), rows, count * row_bytes(shape));
  } else if (shape.dtype == DType::f32) {
    pack_panels<float>(shape, first, count, rows, packed);
  } else {
    pack_panels<std::uint16_t>(shape, first, count, rows, packed);
  }
}

const float* tile(const backend::Matrix& matrix, std::size_t panel, std::size_t k0, std::size_t depth,
                  float* scratch) noexcept {
  const backend::MatrixShape& shape = matrix.shape;
  if (is_panel_form(shape.dtype)) {
    const std::byte* at = matrix.data + (panel * shape.inputs + k0) * kPanel * element_bytes(shape.dtype);
    if (shape.dtype == DType::f32) return reinterpret_cast<const float*>(at);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(at);
    if (shape.dtype == DType::f16) {
      for (std::size_t i = 0; i < depth * kPanel; ++i) scratch[i] = f16_to_f32(halves[i]);
    } else {
      for (std::size_t i = 0; i < depth * kPanel; ++i) scratch[i] = bf16_to_f32(halves[i]);
    }
    return scratch;
  }
  float* rows = scratch + kTileFloats;  // [16][kDepth]
  const std::uint64_t first = panel * kPanel;
  const std::size_t present = static_cast<std::size_t>(std::min<std::uint64_t>(kPanel, shape.outputs - first));
  for (std::size_t n = 0; n < present; ++n) decode_row(matrix, first + n, k0, depth, rows + n * kDepth);
  for (std::size_t n = present; n < kPanel; ++n) std::fill_n(rows + n * kDepth, depth, 0.0f);
  transpose(rows, depth, scratch);
  return scratch;
}

void unpack_row(const backend::Matrix& matrix, std::uint64_t row, float* out) noexcept {
  const backend::MatrixShape& shape = matrix.shape;
  if (!is_panel_form(shape.dtype)) return decode_row(matrix, row, 0, shape.inputs, out);
  const std::uint64_t start = row / kPanel * shape.inputs * kPanel + row % kPanel;
  if (shape.dtype == DType::f32) {
    const auto* from = reinterpret_cast<const float*>(matrix.data) + start;
    for (std::uint64_t k = 0; k < shape.inputs; ++k) out[k] = from[k * kPanel];
    return;
  }
  const auto* from = reinterpret_cast<const std::uint16_t*>(matrix.data) + start;
  for (std::uint64_t k = 0; k < shape.inputs; ++k) {
    out[k] = shape.dtype == DType::f16 ? f16_to_f32(from[k * kPanel]) : bf16_to_f32(from[k * kPanel]);
  }
}

}  // namespace tessera::cpu
