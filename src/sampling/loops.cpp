#include "sampling/loops.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tessera::sampling::loops {
namespace {

// Returns math::exp(x) for x <= 0: the same bits with fewer operations. Both functions compute e^x as 2^n * e^r, with an integer n and a
// small r. Two operations can be left out here: x needs no upper limit, and one multiplication by 2^n is enough. (For greater x,
// math::exp() multiplies twice. Here n is at least -126, because the result is 0 for a smaller x, so a float can represent 2^n.)
[[gnu::always_inline]] inline float exp_below_zero(float x) noexcept {
  using namespace math::inlined;
  const float clamped = at_least(x, -88.0f);
  const float shifted = clamped * 0x1.715476p+0f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
  float p = r * 0x1.9f0896p-13f + 0x1.6d8d06p-10f;
  p = p * r + 0x1.111270p-7f;
  p = p * r + 0x1.55548ep-5f;
  p = p * r + 0x1.555554p-3f;
  p = p * r + 0.5f;
  p = (p * r) * r + r + 1.0f;
  const std::uint32_t power = (__builtin_bit_cast(std::uint32_t, shifted) - __builtin_bit_cast(std::uint32_t, kRound) + 127u) << 23;
  return if_less(x, -87.25f, 0.0f, p * __builtin_bit_cast(float, power));
}

// The loops. Without FMA, as everywhere, so that vectors of any width give the same bits.
struct Loops {
  [[gnu::always_inline]] static std::size_t first_highest(const float* x, std::size_t n) noexcept {
    constexpr std::size_t kBlock = 256;
    std::int32_t highest = std::numeric_limits<std::int32_t>::min();
    std::size_t best = 0;  // begin of the first block that has the highest rank
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
      const std::int32_t here = highest_rank(x + begin, std::min(kBlock, n - begin));
      if (here <= highest) continue;
      highest = here;
      best = begin;
    }
    while (best + 1 < n && rank(x[best]) != highest) ++best;
    return best;
  }

  [[gnu::always_inline]] static void divide(float* x, std::size_t n, float shift, float divisor) noexcept {
    for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - shift) / divisor;
  }

  [[gnu::always_inline]] static double sum(const float* x, std::size_t n) noexcept {
    FourSums sums;
    sums.add(x, n);
    return sums.total();
  }

  // Adds up a block's weights while the next block's weights are computed. (Additions to a sum wait for each other, so a loop that only
  // adds is slow.)
  [[gnu::always_inline]] static double weigh(const float* x, std::size_t n, float top, float* weights) noexcept {
    constexpr std::size_t kBlock = 64;
    FourSums sums;
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
      const std::size_t end = std::min(n, begin + kBlock);
      for (std::size_t i = begin; i < end; ++i) weights[i] = exp_below_zero(x[i] - top);
      sums.add(weights + begin, end - begin);
    }
    return sums.total();
  }

  [[gnu::always_inline]] static double total(const float* x, std::size_t n) noexcept {
    std::array<double, 8> sums{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += static_cast<double>(x[i + lane]);
    }
    double sum = 0.0;
    for (; i < n; ++i) sum += static_cast<double>(x[i]);
    for (const double s : sums) sum += s;
    return sum;
  }

  [[gnu::always_inline]] static std::size_t drop_weights(const float* x, const std::int32_t* tokens, std::size_t n, std::uint32_t least,
                                                         std::uint32_t last, float* weights) noexcept {
    const auto lowest = static_cast<std::int32_t>(least ^ 0x80000000u);
    const auto highest_token = static_cast<std::int32_t>(~last);
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t r = rank(x[i]);
      const bool kept = (r > lowest) | ((r == lowest) & (tokens[i] <= highest_token));
      weights[i] = math::inlined::select(kept, weights[i], 0.0f);
      count += kept ? 1u : 0u;
    }
    return count;
  }

  [[gnu::always_inline]] static Split split(const float* x, const float* weights, std::size_t n, float low, float high,
                                            std::uint64_t* list) noexcept {
    using Floats = float __attribute__((vector_size(16)));
    using Bits = std::int32_t __attribute__((vector_size(16)));
    using Doubles = double __attribute__((vector_size(32)));
    constexpr Bits kLane = {1, 2, 4, 8};
    Split result;
    Doubles sums[2] = {};
    std::size_t begin = 0;
    for (; begin + 8 <= n; begin += 8) {
      Bits bits[2];
      for (std::size_t half = 0; half < 2; ++half) {
        Floats value, weight;
        std::memcpy(&value, x + begin + 4 * half, sizeof(value));
        std::memcpy(&weight, weights + begin + 4 * half, sizeof(weight));
        sums[half] += __builtin_convertvector(reinterpret_cast<Floats>(reinterpret_cast<Bits>(weight) & (value >= high)), Doubles);
        bits[half] = ((value >= low) & (value < high)) & kLane;
      }
      const Bits both = bits[0] | (bits[1] << 4);
      auto inside = static_cast<std::uint32_t>((both[0] | both[1]) | (both[2] | both[3]));
      for (; inside != 0; inside &= inside - 1) list[result.count++] = begin + static_cast<std::size_t>(std::countr_zero(inside));
    }
    std::array<double, 8> above;
    std::memcpy(above.data(), sums, sizeof(sums));
    for (; begin < n; ++begin) {
      above[0] += x[begin] >= high ? static_cast<double>(weights[begin]) : 0.0;
      if ((x[begin] >= low) & (x[begin] < high)) list[result.count++] = begin;
    }
    for (const double sum : above) result.above += sum;
    return result;
  }
};

// Runs a loop compiled for AVX2, whose vectors are twice as wide as SSE's.
#if defined(__x86_64__)
template <class Loop>
[[gnu::target("avx2")]] auto run_avx2(const Loop& loop) noexcept {
  return loop();
}
#endif

template <class Loop>
auto run(const Loop& loop) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return run_avx2(loop);
#endif
  return loop();
}

}  // namespace

std::size_t first_highest(const float* x, std::size_t n) noexcept {
  return run([=]() __attribute__((always_inline)) { return Loops::first_highest(x, n); });
}

void divide(float* x, std::size_t n, float shift, float divisor) noexcept {
  run([=]() __attribute__((always_inline)) { Loops::divide(x, n, shift, divisor); });
}

double sum(const float* x, std::size_t n) noexcept {
  return run([=]() __attribute__((always_inline)) { return Loops::sum(x, n); });
}

double weigh(const float* x, std::size_t n, float top, float* weights) noexcept {
  return run([=]() __attribute__((always_inline)) { return Loops::weigh(x, n, top, weights); });
}

double total(const float* x, std::size_t n) noexcept {
  return run([=]() __attribute__((always_inline)) { return Loops::total(x, n); });
}

std::size_t drop_weights(const float* x, const std::int32_t* tokens, std::size_t n, std::uint32_t least, std::uint32_t last, float* weights) noexcept {
  return run([=]() __attribute__((always_inline)) { return Loops::drop_weights(x, tokens, n, least, last, weights); });
}

Split split(const float* x, const float* weights, std::size_t n, float low, float high, std::uint64_t* list) noexcept {
  return run([=]() __attribute__((always_inline)) { return Loops::split(x, weights, n, low, high, list); });
}

}  // namespace tessera::sampling::loops
