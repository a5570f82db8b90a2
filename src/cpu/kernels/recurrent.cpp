// Convolutions and recurrences, a row at a time, in the order of arithmetic of docs/reference/numerics.md. Lanes are columns (in
// convolutions) or values of a head (in recurrences); no sum goes across lanes. The state of a head is a matrix [keys][values]. A sum over
// the keys has four chains of additions: key i belongs to chain i mod 4. The sum is (chain 0 + chain 2) + (chain 1 + chain 3).
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/wide.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace recurrent {
namespace {

constexpr std::size_t kChains = 4;

// Returns the sum of `n` terms in four chains. term(i, sum) returns `sum` with term i added.
template <class Term>
TESSERA_INLINE F32x16 chained(std::size_t n, Term term) {
  F32x16 sum[kChains] = {};
  std::size_t i = 0;
  for (; i + kChains <= n; i += kChains) {
    TESSERA_UNROLL
    for (std::size_t j = 0; j < kChains; ++j) sum[j] = term(i + j, sum[j]);
  }
  if (i < n) sum[0] = term(i, sum[0]);
  if (i + 1 < n) sum[1] = term(i + 1, sum[1]);
  if (i + 2 < n) sum[2] = term(i + 2, sum[2]);
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// Updates the state S of 16 values of a head [keys][16], with (x) as the outer product: S = decay * S + key (x) added. Returns the product
// of the query and the new S, one number for each value.
TESSERA_INLINE F32x16 step(const StateJob& job, F32x16 added) {
  const F32x16 decay = broadcast(job.decay);
  return chained(job.keys, [&](std::size_t i, F32x16 sum) TESSERA_LAMBDA {
    const F32x16 state = fma(decay, load<F32x16>(job.before + 16 * i), broadcast(job.key[i]) * added);
    store(job.after + 16 * i, state);
    return fma(broadcast(job.query[i]), state, sum);
  });
}

void delta_rule(const StateJob& job) noexcept {
  const F32x16 recalled = chained(job.keys, [&](std::size_t i, F32x16 sum) TESSERA_LAMBDA {
    return fma(broadcast(job.key[i]), load<F32x16>(job.before + 16 * i), sum);
  });
  const F32x16 wrong = load_some(job.value, job.n) - broadcast(job.decay) * recalled;
  store_some(job.out, step(job, broadcast(job.rate) * wrong), job.n);
}

void scan(const StateJob& job) noexcept {
  const F32x16 value = load_some(job.value, job.n);
  const F32x16 seen = step(job, broadcast(job.rate) * value);
  store_some(job.out, seen + broadcast(job.skip) * value, job.n);
}

void convolve(const ConvolutionJob& job) noexcept {
  for (std::size_t at = 0; at < job.n; at += kWideLanes) {
    const std::size_t present = job.n - at < kWideLanes ? job.n - at : kWideLanes;
    const auto of = [&](const float* x) TESSERA_LAMBDA {
      if (present == kWideLanes) return load_wide(x + at);
      float some[kWideLanes] = {};
      __builtin_memcpy(some, x + at, present * sizeof(float));
      return load_wide(some);
    };
    Wide sum = job.bias != nullptr ? of(job.bias) : wide(0.0f);
    for (std::size_t i = 0; i < job.width; ++i) sum = sum + of(job.weight + i * job.stride) * of(job.inputs[i]);
    if (job.silu) sum = sum / (1.0f + math::inlined::exp(-sum));
    float some[kWideLanes];
    store(present == kWideLanes ? job.out + at : some, sum);
    if (present < kWideLanes) __builtin_memcpy(job.out + at, some, present * sizeof(float));
  }
}

}  // namespace
}  // namespace recurrent

void add_recurrent(Kernels& kernels) noexcept {
  using namespace recurrent;
  kernels.recurrent = {.convolve = convolve, .delta_rule = delta_rule, .scan = scan};
}

}  // namespace tessera::cpu::TESSERA_ISA
