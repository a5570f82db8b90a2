// Q5_K: 256 values in eight sub-blocks of 32, 5-bit numbers with a 6-bit scale and minimum each (ggml's block_q5_K).
//   byte 0    d, f16
//   byte 2    dmin, f16
//   byte 4    scale[8] and min[8], six bits each (MinScales in k_quants.hpp)
//   byte 16   h[32]: bit j of byte i is the fifth bit of value i of sub-block j
//   byte 48   q[128], the low four bits: bytes 32 j to 32 j + 31 hold sub-block 2 j in their low halves and 2 j + 1 in
//             their high halves
// Decoding: value = (d * scale) * q - (dmin * min). Both products are exact in f32 (11 + 6 + 5 and 11 + 6 significant bits) and only the
// difference is rounded, so neither the order of the products nor a fused step changes the result.
// Encoding: the same as for Q4_K.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/packed_form.hpp"
#include "formats/quants/k_quants.hpp"

namespace tessera::formats {

struct Q5_K {
  static constexpr DType dtype = DType::q5_k;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 176;
  static constexpr PackedForm packed_form = PackedForm::block256_5;
  static constexpr Writing writing = {.file_type = 16, .fallback = DType::q5_1};

  static void unpack(const std::byte* block, Block256& parts) noexcept {
    parts.d = detail::load_u16(block);
    parts.dmin = detail::load_u16(block + 2);
    std::memcpy(parts.scales.data(), block + 4, 12);
    detail::unpack_nibble_pairs(block + 48, parts.q);
    std::uint8_t fifth[32];
    for (std::size_t i = 0; i < 32; ++i) fifth[i] = static_cast<std::uint8_t>(block[16 + i]);
    for (std::size_t j = 0; j < 8; ++j) {
      const std::uint8_t mask = static_cast<std::uint8_t>(1u << j);
      std::uint8_t* const sub = parts.q.data() + 32 * j;
      for (std::size_t i = 0; i < 32; ++i)
        sub[i] = static_cast<std::uint8_t>(sub[i] | ((fifth[i] & mask) != 0 ? 16 : 0));
    }
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
    detail::encode_lines(values, 31.0f, scales, q, importance);
    scales.store(block);
    for (std::size_t i = 0; i < 32; ++i) {
      unsigned bits = 0;
      for (std::size_t j = 0; j < 8; ++j) bits |= static_cast<unsigned>(q[32 * j + i] >> 4) << j;
      block[16 + i] = static_cast<std::byte>(bits);
    }
    detail::pack_nibble_pairs(q, block + 48);
  }
};

}  // namespace tessera::formats
