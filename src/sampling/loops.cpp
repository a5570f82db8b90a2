#include "sampling/loops.hpp"

namespace tessera::sampling::loops {
namespace {

[[gnu::always_inline]] inline void weigh_all(const float* x, std::size_t n, float top, float* weights) noexcept {
  for (std::size_t i = 0; i < n; ++i) weights[i] = math::inlined::exp(x[i] - top);
}

#if defined(__x86_64__)
// The same loop in vectors twice as wide. Without FMA, as everywhere in exp(): the same bits.
[[gnu::target("avx2")]] void weigh_avx2(const float* x, std::size_t n, float top, float* weights) noexcept {
  weigh_all(x, n, top, weights);
}
#endif

}  // namespace

void weigh(const float* x, std::size_t n, float top, float* weights) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return weigh_avx2(x, n, top, weights);
#endif
  weigh_all(x, n, top, weights);
}

}  // namespace tessera::sampling::loops
