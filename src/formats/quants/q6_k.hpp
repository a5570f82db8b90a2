// Q6_K: 256 values in sixteen sub-blocks of 16. Values are 6-bit numbers from -32 to 31; each sub-block has an 8-bit scale (ggml's
// block_q6_K). The block has two halves of 128 values. Value 32 g + i of a half (half = 0 or 1, g = 0 to 3, i = 0 to 31) lies in
//   byte 64 half + i + 32 (g mod 2)   low four bits of q + 32: the low half for g < 2, else the high half
//   byte 128 + 32 half + i            high two bits of q + 32, at bit 2 g
// and after both halves
//   byte 192  scale[16], i8
//   byte 208  d, f16
// Decoding: value = (d * scale) * q. The factors have 11, 7 and 5 significant bits (-128 and -32 are powers of two), so the products are
// exact in f32, and neither their order nor a compiler flag changes the result.
// Encoding: the search of k_quants.hpp without a minimum. A value's weight is its importance, or without importance x * x as in ggml. NaN
// counts as 0, and values out of range saturate. The search adds up products, so a build with another -ffp-contract may choose other,
// equally good blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/packed_form.hpp"
#include "formats/quants/k_quants.hpp"

namespace tessera::formats {

struct Q6_K {
  static constexpr DType dtype = DType::q6_k;
  static constexpr std::size_t block_values = 256;
  static constexpr std::size_t block_bytes = 210;
  static constexpr PackedForm packed_form = PackedForm::block256_6;
  static constexpr Writing writing = {.file_type = 18, .fallback = DType::q8_0};

  static void unpack(const std::byte* block, Block256& parts) noexcept {
    parts.d = detail::load_u16(block + 208);
    parts.dmin = 0;
    std::memcpy(parts.scales.data(), block + 192, 16);
    unpack(block, parts.q);
  }

  static void decode(const std::byte* block, float* values) noexcept {
    const float d = detail::load_f16(block + 208);
    detail::Quants<256> q;
    unpack(block, q);
    float scale[16];
    for (std::size_t j = 0; j < 16; ++j) scale[j] = d * static_cast<float>(static_cast<std::int8_t>(block[192 + j]));
    for (std::size_t j = 0; j < 16; j += 2) {  // two sub-blocks per iteration: with one, g++ vectorises across j, which is twice as slow
      for (std::size_t i = 0; i < 16; ++i) values[16 * j + i] = scale[j] * static_cast<float>(q[16 * j + i] - 32);
      for (std::size_t i = 16; i < 32; ++i) values[16 * j + i] = scale[j + 1] * static_cast<float>(q[16 * j + i] - 32);
    }
  }

  static void encode(const float* values, std::byte* block, const float* importance = nullptr) noexcept {
    float x[16][16], weight[16][16], scale[16];
    for (std::size_t j = 0; j < 16; ++j) {
      for (std::size_t i = 0; i < 16; ++i) x[j][i] = detail::searchable(values[16 * j + i]);
      for (std::size_t i = 0; i < 16; ++i) weight[j][i] = importance != nullptr ? importance[16 * j + i] : x[j][i] * x[j][i];
      scale[j] = fit_scale(x[j], weight[j]);
    }
    // The scale of largest magnitude becomes -128, the only integer without a positive counterpart.
    const float top = detail::largest(scale);
    const float d = detail::superblock_scale(top / -128.0f);
    const float inverse_d = detail::reciprocal(d);
    detail::store_f16(block + 208, d);
    detail::Quants<256> q;
    for (std::size_t j = 0; j < 16; ++j) {
      const int middle = std::min(detail::round_away(scale[j] * inverse_d, 128), 127);
      int best = middle;
      float least = -1;
      for (int s = middle - 1; s <= middle + 1; ++s) {
        if (s < -128 || s > 127) continue;
        const float error = scale_error(x[j], weight[j], d * static_cast<float>(s));
        if (least >= 0 && !(error < least)) continue;
        least = error;
        best = s;
      }
      block[192 + j] = static_cast<std::byte>(best);
      const float inverse = detail::reciprocal(d * static_cast<float>(best));
      for (std::size_t i = 0; i < 16; ++i) q[16 * j + i] = static_cast<std::uint8_t>(level(x[j][i] * inverse) + 32.0f);
    }
    pack(q, block);
  }

 private:
  // Returns the integer of -32..31 that is nearest to `value`.
  [[nodiscard]] static float level(float value) noexcept { return detail::nearest_level(value + 32.0f, 63.0f) - 32.0f; }

  // Returns a sub-block's scale, of either sign, with the least weighted squared error among those that the search tries.
  [[nodiscard]] static float fit_scale(const float (&x)[16], const float (&weight)[16]) noexcept {
    const float extreme = detail::largest(x);
    if (extreme == 0) return 0;
    float best = extreme / -32.0f;
    float best_gain = -1;
    for (int step = -9; step <= 9; ++step) {
      const float inverse = -(32.0f + 0.1f * static_cast<float>(step)) / extreme;
      float wll[16], wlx[16];
      for (std::size_t i = 0; i < 16; ++i) {
        const float l = level(inverse * x[i]);
        wll[i] = weight[i] * l * l;
        wlx[i] = weight[i] * l * x[i];
      }
      const float sum_ll = detail::sum(wll), sum_lx = detail::sum(wlx);
      if (!(sum_ll > 0)) continue;
      const float gain = sum_lx / sum_ll * sum_lx;  // how much this scale reduces sum(weight * x * x)
      if (!(gain > best_gain)) continue;
      best_gain = gain;
      best = sum_lx / sum_ll;
    }
    return best;
  }

  [[nodiscard]] static float scale_error(const float (&x)[16], const float (&weight)[16], float scale) noexcept {
    const float inverse = detail::reciprocal(scale);
    float error[16];
    for (std::size_t i = 0; i < 16; ++i) {
      const float miss = scale * level(x[i] * inverse) - x[i];
      error[i] = weight[i] * (miss * miss);
    }
    return detail::sum(error);
  }

  template <unsigned LowShift, unsigned HighShift>
  static void unpack_group(const std::byte* low, const std::byte* high, std::uint8_t* q) noexcept {
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned four = (static_cast<unsigned>(low[i]) >> LowShift) & 15u;
      const unsigned two = (static_cast<unsigned>(high[i]) >> HighShift) & 3u;
      q[i] = static_cast<std::uint8_t>(four | (two << 4));
    }
  }

  static void unpack(const std::byte* block, detail::Quants<256>& q) noexcept {
    for (std::size_t half = 0; half < 2; ++half) {
      const std::byte* low = block + 64 * half;
      const std::byte* high = block + 128 + 32 * half;
      std::uint8_t* out = q.data() + 128 * half;
      unpack_group<0, 0>(low, high, out);
      unpack_group<0, 2>(low + 32, high, out + 32);
      unpack_group<4, 4>(low, high, out + 64);
      unpack_group<4, 6>(low + 32, high, out + 96);
    }
  }

  static void pack(const detail::Quants<256>& q, std::byte* block) noexcept {
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint8_t* in = q.data() + 128 * half;
      for (std::size_t i = 0; i < 32; ++i) {
        block[64 * half + i] = static_cast<std::byte>((in[i] & 15) | ((in[64 + i] & 15) << 4));
        block[64 * half + 32 + i] = static_cast<std::byte>((in[32 + i] & 15) | ((in[96 + i] & 15) << 4));
        block[128 + 32 * half + i] = static_cast<std::byte>((in[i] >> 4) | ((in[32 + i] >> 4) << 2) |
                                                            ((in[64 + i] >> 4) << 4) | ((in[96 + i] >> 4) << 6));
      }
    }
  }
};

}  // namespace tessera::formats
