// The split of f16 weights into two bf16, for every half that there is.
#define TESSERA_ISA split_test
#include "cpu/kernels/bf16.hpp"

#include <bit>
#include <cmath>

#include "core/float16.hpp"

#include "catch.hpp"

using namespace tessera;

TEST_CASE("the high part of every half is the half rounded to bf16, and the low part is what is left of it") {
  using namespace cpu::split_test;
  const FlushDenormals flush;
  std::size_t wrong = 0;
  for (std::uint32_t first = 0; first < 0x10000; first += 16) {
    float values[16], highs[16], rounded[16];
    for (std::uint32_t i = 0; i < 16; ++i) values[i] = f16_to_f32(static_cast<std::uint16_t>(first + i));
    const auto x = load<F32x16>(reinterpret_cast<const std::byte*>(values));
    store(highs, high_of_f16(x));
    store(rounded, as<F32x16>(to_bf16(x)));
    for (std::size_t i = 0; i < 16; ++i) {
      const float low = values[i] - highs[i];
      if (!std::isfinite(values[i])) {
        wrong += !std::isnan(low);
        continue;
      }
      const bool same = std::bit_cast<std::uint32_t>(highs[i]) == std::bit_cast<std::uint32_t>(rounded[i]);
      const bool fits = (std::bit_cast<std::uint32_t>(low) & 0xffffu) == 0 && highs[i] + low == values[i];
      wrong += !same || !fits;
    }
  }
  CHECK(wrong == 0);
}
