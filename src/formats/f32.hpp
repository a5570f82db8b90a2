// F32: plain little-endian IEEE binary32, one value per block.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/packed_form.hpp"

namespace tessera::formats {

struct F32 {
  static constexpr DType dtype = DType::f32;
  static constexpr std::size_t block_values = 1;
  static constexpr std::size_t block_bytes = 4;
  static constexpr PackedForm packed_form = PackedForm::f32;
  static constexpr Writing writing = {.file_type = 0, .fallback = DType::f32};

  static void decode(const std::byte* block, float* values) noexcept { std::memcpy(values, block, 4); }
  static void encode(const float* values, std::byte* block) noexcept { std::memcpy(block, values, 4); }
};

}  // namespace tessera::formats
