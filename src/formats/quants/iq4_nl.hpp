// IQ4_NL: 32 values of 4 bits with one scale. The 4 bits stand for one of 16 integers at unequal distances (ggml's block_iq4_nl).
//   byte 0   d, f16
//   byte 2   q[16]: value i in the low half of byte i, value i + 16 in the high half
// Decoding: value = d * table[q], where the table's integers are from -127 to 113 (kNonLinear in open_blocks.hpp). The factors have 11 and
// 7 significant bits, so the product is exact in f32.
// Encoding: the search of scale_search.hpp. NaN counts as 0, and values out of range saturate.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/open_blocks.hpp"
#include "formats/scale_search.hpp"

namespace tessera::formats {

struct IQ4_NL {
  static constexpr DType dtype = DType::iq4_nl;
  static constexpr std::size_t block_values = 32;
  static constexpr std::size_t block_bytes = 18;
  static constexpr PackedForm packed_form = PackedForm::kept_iq4_nl;
  static constexpr Writing writing = {.file_type = 25, .fallback = DType::f16};

  static void open(const std::byte* block, OpenBlock& to) noexcept {
    to.d[0] = to.d[1] = detail::load_f16(block);
    detail::look_up<16>(detail::kNonLinear, block + 2, to.q.data());
  }

  static void decode(const std::byte* block, float* values) noexcept {
    OpenBlock parts;
    open(block, parts);
    detail::decode<32>(parts, values);
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    float x[32];
    for (std::size_t i = 0; i < 32; ++i) x[i] = detail::searchable(values[i]);
    float weight[32], squares[32];
    for (std::size_t i = 0; i < 32; ++i) squares[i] = x[i] * x[i];
    detail::weigh(x, weight, importance, detail::sum(squares) / 32.0f);
    detail::store_f16(block, detail::half_range(detail::best_scale<detail::NonLinear>(x, weight)));
    const float inverse = detail::reciprocal(detail::load_f16(block));
    detail::Quants<32> q;
    for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(detail::NonLinear::index(x[i] * inverse));
    detail::pack_nibbles(q, block + 2);
  }
};

}  // namespace tessera::formats
