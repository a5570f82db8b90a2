// Kernels of recurrent layers (gated delta rule, Mamba-2): the causal convolution, and the update of a head's state by one row. Both
// compute one row at a time, in the order of arithmetic of docs/reference/numerics.md.
//
// In convolve() a vector's 16 lanes are columns of the row. In delta_rule() and scan() they are 16 neighbouring values of one head, whose
// state S is a matrix [keys][values] (here "keys" is the state's first dimension, not attention's keys). No sum adds lanes of one vector.
// A sum over the keys is computed in four chains, which a CPU computes at the same time because no chain waits for another: chain c adds
// up the terms of keys c, c + 4, c + 8, ... The result is (chain 0 + chain 2) + (chain 1 + chain 3).
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

// Updates 16 columns (values) of a head's state, S [keys][16]: S = decay * S + key (x) added, where (x) is the outer product of job.key
// [keys] and `added` [16]. Then returns query * S, the product of job.query [keys] and the new S: one number for each of the 16 values.
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
