// BF16: the upper half of an IEEE binary32, one value per block. Decoding is exact; encoding rounds to nearest, ties to
// even. NaN stays NaN.
#pragma once

#include <cstddef>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/block.hpp"
#include "formats/packed_form.hpp"

namespace tessera::formats {

struct BF16 {
  static constexpr DType dtype = DType::bf16;
  static constexpr std::size_t block_values = 1;
  static constexpr std::size_t block_bytes = 2;
  static constexpr PackedForm packed_form = PackedForm::bf16;
  static constexpr Writing writing = {.file_type = 32, .fallback = DType::bf16};

  static void decode(const std::byte* block, float* values) noexcept {
    *values = bf16_to_f32(detail::load_u16(block));
  }
  static void encode(const float* values, std::byte* block) noexcept { detail::store_u16(block, f32_to_bf16(*values)); }
};

}  // namespace tessera::formats
