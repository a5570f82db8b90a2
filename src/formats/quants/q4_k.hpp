// Q4_K: 256 values in eight sub-blocks of 32, 4-bit numbers with a 6-bit scale and minimum each (ggml's block_q4_K).
//   byte 0    d, f16
//   byte 2    dmin, f16
//   byte 4    scale[8] and min[8], six bits each (MinScales in k_quants.hpp)
//   byte 16   q[128]: bytes 32 j to 32 j + 31 hold sub-block 2 j in their low halves and 2 j + 1 in their high halves
// Decoding: value = (d * scale) * q - (dmin * min). Both products are exact in f32 (11 + 6 + 4 and 11 + 6 significant bits) and only the
// difference is rounded, so neither the order of the products nor a fused step changes the result.
// Encoding: the search of k_quants.hpp. NaN counts as 0, and values out of range saturate. The search adds up products, so a build with
// another -ffp-contract may choose other, equally good blocks.
#pragma once

#include <cstddef>
#include <cstring>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/packed_form.hpp"
#include "formats/quants/k_quants.hpp"

namespace tessera::formats {

struct Q4_K {
  static constexpr DType dtype = DType::q4_k;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 144;
  static constexpr PackedForm packed_form = PackedForm::block256_4;
  static constexpr Writing writing = {.file_type = 14, .fallback = DType::q5_0};

  static void unpack(const std::byte* block, Block256& parts) noexcept {
    parts.d = detail::load_u16(block);
    parts.dmin = detail::load_u16(block + 2);
    std::memcpy(parts.scales.data(), block + 4, 12);
    detail::unpack_nibble_pairs(block + 16, parts.q);
  }

  static void decode(const std::byte* block, float* values) noexcept {
    detail::MinScales scales;
    Block256 parts;
    scales.load(block);
    unpack(block, parts);
    detail::decode_lines(scales, parts.q, values);
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    detail::MinScales scales;
    detail::Quants<256> q;
    detail::encode_lines(values, 15.0f, scales, q, importance);
    scales.store(block);
    detail::pack_nibble_pairs(q, block + 16);
  }
};

}  // namespace tessera::formats
