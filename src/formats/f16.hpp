// F16: IEEE binary16, one value per block. Decoding is exact; encoding rounds to nearest, ties to even, and values from
// 65520 on become infinity. NaN stays NaN.
#pragma once

#include <cstddef>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/block.hpp"
#include "formats/packed_form.hpp"

namespace tessera::formats {

struct F16 {
  static constexpr DType dtype = DType::f16;
  static constexpr std::size_t block_values = 1;
  static constexpr std::size_t block_bytes = 2;
  static constexpr PackedForm packed_form = PackedForm::f16;
  static constexpr Writing writing = {.file_type = 1, .fallback = DType::f16};

  static void decode(const std::byte* block, float* values) noexcept { *values = detail::load_f16(block); }
  static void encode(const float* values, std::byte* block) noexcept { detail::store_f16(block, *values); }
};

}  // namespace tessera::formats
