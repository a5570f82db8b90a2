// What is neither a product nor attention, in the one order of docs/numerics.md: sums in 16 lanes (element mod 16) that a
// fixed tree joins, products and sums rounded separately.
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/simd.hpp"
#include "support/math_inline.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

TESSERA_INLINE float tree_sum(float (&lanes)[16]) {
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// The sum of term(x[i]); `term` is of vectors.
template <class Term>
TESSERA_INLINE float lane_sum(const float* x, std::size_t n, Term term) {
  F32x16 sum = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) sum = sum + term(load<F32x16>(x + i));
  float lanes[16], rest[16];
  store(lanes, sum);
  store(rest, term(load_some(x + i, n - i)));
  for (std::size_t lane = 0; lane < n - i; ++lane) lanes[lane] += rest[lane];
  return tree_sum(lanes);
}

// out[i] = fn(x[i], at), 16 at a time; at(y) gives the 16 of another array.
template <class Fn>
TESSERA_INLINE void map(const float* x, std::size_t n, float* out, Fn fn) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const auto at = [i](const float* y) TESSERA_LAMBDA { return load<F32x16>(y + i); };
    store(out + i, fn(at(x), at));
  }
  if (i == n) return;
  const std::size_t rest = n - i;
  const auto at = [=](const float* y) TESSERA_LAMBDA { return load_some(y + i, rest); };
  store_some(out + i, fn(at(x), at), rest);
}

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) noexcept {
  const float mean = lane_sum(x, n, [](F32x16 v) TESSERA_LAMBDA { return v * v; }) / static_cast<float>(n);
  const F32x16 scale = broadcast(1.0f / __builtin_sqrtf(mean + eps));
  map(x, n, out, [&](F32x16 v, auto at) TESSERA_LAMBDA { return (v * scale) * at(weight); });
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out) noexcept {
  const float average = lane_sum(x, n, [](F32x16 v) TESSERA_LAMBDA { return v; }) / static_cast<float>(n);
  const F32x16 mean = broadcast(average);
  const float variance = lane_sum(x, n, [&](F32x16 v) TESSERA_LAMBDA { return (v - mean) * (v - mean); }) /
                         static_cast<float>(n);
  const F32x16 scale = broadcast(1.0f / __builtin_sqrtf(variance + eps));
  if (bias == nullptr) {
    map(x, n, out, [&](F32x16 v, auto at) TESSERA_LAMBDA { return ((v - mean) * scale) * at(weight); });
  } else {
    map(x, n, out, [&](F32x16 v, auto at) TESSERA_LAMBDA { return ((v - mean) * scale) * at(weight) + at(bias); });
  }
}

void add(const float* x, std::size_t n, float* out) noexcept {
  map(x, n, out, [&](F32x16 v, auto at) TESSERA_LAMBDA { return at(out) + v; });
}

// Blocks of 16 pairs, taken apart first: g++ 12 makes one fmaddsub of a loop over a * cosine -+ b * sine in place, also
// where -ffp-contract=off forbids it.
void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept {
  const std::size_t step = interleaved ? 2 : 1;           // from pair to pair
  const std::size_t partner = interleaved ? 1 : n_pairs;  // from a pair's first element to its second
  for (std::size_t i = 0; i < n_pairs; i += 16) {
    const std::size_t present = n_pairs - i < 16 ? n_pairs - i : 16;
    float cosines[16] = {}, sines[16] = {}, firsts[16] = {}, seconds[16] = {};
    float* from = head + i * step;
    for (std::size_t lane = 0; lane < present; ++lane) {
      cosines[lane] = table[2 * (i + lane)];
      sines[lane] = table[2 * (i + lane) + 1];
      firsts[lane] = from[lane * step];
      seconds[lane] = from[lane * step + partner];
    }
    const auto cosine = load<F32x16>(cosines), sine = load<F32x16>(sines);
    const auto a = load<F32x16>(firsts), b = load<F32x16>(seconds);
    store(firsts, a * cosine - b * sine);
    store(seconds, a * sine + b * cosine);
    for (std::size_t lane = 0; lane < present; ++lane) {
      from[lane * step] = firsts[lane];
      from[lane * step + partner] = seconds[lane];
    }
  }
}

struct Silu {
  TESSERA_INLINE float of(float v) { return v / (1.0f + math::inlined::exp(-v)); }
};
struct GeluTanh {  // Hendrycks and Gimpel 2016, the tanh form; 0.7978... = sqrt(2 / pi)
  TESSERA_INLINE float of(float v) {
    const float inner = 0.79788456080286535588f * (v + 0.044715f * (v * v * v));
    return 0.5f * v * (1.0f + math::inlined::tanh(inner));
  }
};
struct GeluErf {  // 0.7071... = 1 / sqrt(2)
  TESSERA_INLINE float of(float v) { return 0.5f * v * (1.0f + math::inlined::erf(v * 0.70710678118654752440f)); }
};

constexpr std::size_t kBlock = 64;  // a loop that compilers vectorise rather than unroll

// A block of x, zeros past n.
TESSERA_INLINE void load_block(const float* x, std::size_t n, float (&block)[kBlock]) {
  if (n >= kBlock) {
    __builtin_memcpy(block, x, sizeof block);
  } else {
    __builtin_memset(block, 0, sizeof block);
    __builtin_memcpy(block, x, n * sizeof(float));
  }
}

template <class Activation>
void activate(const float* x, std::size_t n, float* out) noexcept {
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t present = n - i < kBlock ? n - i : kBlock;
    float block[kBlock];
    load_block(x + i, present, block);
    for (std::size_t lane = 0; lane < kBlock; ++lane) block[lane] = Activation::of(block[lane]);
    __builtin_memcpy(out + i, block, present * sizeof(float));
  }
}

template <class Activation>
void activate_gated(const float* gate, std::size_t n, float* up) noexcept {
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t present = n - i < kBlock ? n - i : kBlock;
    float gates[kBlock], ups[kBlock];
    load_block(gate + i, present, gates);
    load_block(up + i, present, ups);
    for (std::size_t lane = 0; lane < kBlock; ++lane) ups[lane] = Activation::of(gates[lane]) * ups[lane];
    __builtin_memcpy(up + i, ups, present * sizeof(float));
  }
}

}  // namespace

void add_elementwise(Kernels& kernels) noexcept {
  kernels.elementwise = {
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .rope = rope,
      .activate = {activate<Silu>, activate<GeluTanh>, activate<GeluErf>},
      .activate_gated = {activate_gated<Silu>, activate_gated<GeluTanh>, activate_gated<GeluErf>},
      .add = add,
  };
}

}  // namespace tessera::cpu::TESSERA_ISA
