// Blocks of the formats that kernels keep as they are, of any bytes but for their scales: what tests need that have no
// encoder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/float16.hpp"
#include "formats/formats.hpp"

namespace tessera::test {

inline void put_half(std::byte* at, std::uint16_t bits) { std::memcpy(at, &bits, sizeof bits); }

// Gives a block another d, as the bits of a half. MXFP4 and NVFP4 have none.
template <class F>
void set_d(std::byte* block, std::uint16_t bits) {
  if constexpr (F::dtype == DType::iq1_m) {
    for (std::size_t word = 0; word < 4; ++word) {
      std::byte& at = block[49 + 2 * word];
      at = (at & std::byte{15}) | static_cast<std::byte>((bits >> (4 * word) & 15u) << 4);
    }
  } else {
    constexpr std::size_t place = F::dtype == DType::q2_k ? 80 : F::dtype == DType::q3_k ? 108
                                  : F::dtype == DType::tq1_0 ? 52 : F::dtype == DType::tq2_0 ? 64 : 0;
    put_half(block + place, bits);
  }
}

// The largest of |value| / d that a block may have.
template <class F>
constexpr float largest_of_d() {
  switch (F::dtype) {
    case DType::iq4_nl: return 127;
    case DType::iq4_xs: return 127 * 32;
    case DType::q3_k: return 4 * 32;
    case DType::q2_k: return 3 * 15;
    case DType::iq3_xxs: return 62 * 31 / 4.0f;
    case DType::iq3_s: return 15 * 31;
    case DType::iq2_xxs: case DType::iq2_xs: case DType::iq2_s: return 43 * 31 / 8.0f;
    case DType::iq1_s: case DType::iq1_m: return 9 * 15 / 8.0f;
    default: return 1;
  }
}

// Scales under which values are at most about `size`.
template <class F>
void set_size(std::byte* block, float size) {
  if constexpr (F::dtype == DType::mxfp4) {
    block[0] = static_cast<std::byte>(128 + std::clamp(std::ilogb(size / 12), -126, 120));
  } else if constexpr (F::dtype == DType::nvfp4) {  // a subnormal: in steps of 2^-10
    const auto steps = static_cast<int>(std::clamp(size / 12 * 1024, 1.0f, 7.0f));
    for (std::size_t j = 0; j < 4; ++j) block[j] = static_cast<std::byte>(steps);
  } else {
    set_d<F>(block, f32_to_f16(size / largest_of_d<F>()));
    if constexpr (F::dtype == DType::q2_k) put_half(block + 82, f32_to_f16(size / 15));
  }
}

// Blocks of a format: by its encoder, or if it has none of any bytes, of about the size of the first value.
template <class F>
void encode_or_make_up(const float* values, std::byte* block, std::uint32_t seed) {
  if constexpr (formats::has_encoder<F>) {
    F::encode(values, block);
  } else {
    for (std::size_t i = 0; i < F::block_bytes; ++i) {
      seed = seed * 1664525u + 1013904223u;
      block[i] = static_cast<std::byte>(seed >> 24);
    }
    set_size<F>(block, std::fabs(values[0]) + 0.01f);
  }
}

}  // namespace tessera::test
