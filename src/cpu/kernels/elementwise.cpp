// Kernels of the operations that are neither products nor attention: norms, rope, activation functions, adding and multiplying rows
// (struct Elementwise). The order of arithmetic is written in docs/reference/numerics.md. A sum over a row has 16 lanes: element i is
// added to lane i mod 16. Then the lanes are added by halves (8 + 8, 4 + 4, 2 + 2, 1 + 1). Products and sums are rounded separately (no
// fused multiply-add).
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/wide.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace elementwise {
namespace {

TESSERA_INLINE float tree_sum(float (&lanes)[16]) {
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Returns the sum of term(x[i]). `term` takes and returns vectors of 16 lanes.
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

// Computes out[i] = fn(x[i], at), 16 elements at a time. at(y) returns the elements of another array `y` with the same indices.
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

void multiply(const float* x, std::size_t n, float* out) noexcept {
  map(x, n, out, [&](F32x16 v, auto at) TESSERA_LAMBDA { return at(out) * v; });
}

void l2_norm(const float* x, float eps, float scale, std::size_t n, float* out) noexcept {
  const float sum = lane_sum(x, n, [](F32x16 v) TESSERA_LAMBDA { return v * v; });
  const F32x16 by = broadcast(1.0f / __builtin_sqrtf(sum + eps)), then = broadcast(scale);
  map(x, n, out, [&](F32x16 v, auto) TESSERA_LAMBDA { return (v * by) * then; });
}

// Rotates a head: each element becomes its cosine times the element, plus its sine times the other element of its pair (rope_factors()).
void rope(const float* factors, std::size_t n_pairs, bool interleaved, float* head) noexcept {
  const std::size_t n = 2 * n_pairs;
  const float *own = factors, *partners = factors + n;
  if (interleaved) {
    map(head, n, head, [&](F32x16 v, auto at) TESSERA_LAMBDA { return v * at(own) + swapped<1>(v) * at(partners); });
    return;
  }
  for (std::size_t i = 0; i < n_pairs; i += 16) {
    const std::size_t present = n_pairs - i;
    const auto of = [=](const float* y) TESSERA_LAMBDA { return load_some(y + i, present); };
    const F32x16 a = of(head), b = of(head + n_pairs);
    store_some(head + i, a * of(own) + b * of(partners), present);
    store_some(head + n_pairs + i, b * of(own + n_pairs) + a * of(partners + n_pairs), present);
  }
}

// Base of gated activations act(gate) * up that take `up` as it is: all but ClampedSwiglu, whose side() changes it.
struct SideAsItIs {
  TESSERA_INLINE Wide side(Wide v) { return v; }
};

struct Silu : SideAsItIs {
  TESSERA_INLINE Wide of(Wide v) { return v / (1.0f + math::inlined::exp(-v)); }
};
struct ClampedSwiglu {  // gpt-oss's model card (OpenAI 2025)
  TESSERA_INLINE Wide of(Wide v) {
    const Wide x = at_most(v, 7.0f);
    return x / (1.0f + math::inlined::exp(-1.702f * x));
  }
  TESSERA_INLINE Wide side(Wide v) { return at_least(at_most(v, 7.0f), -7.0f) + 1.0f; }
};
struct GeluTanh : SideAsItIs {  // Hendrycks and Gimpel 2016, the tanh form; 0.7978... = sqrt(2 / pi)
  TESSERA_INLINE Wide of(Wide v) {
    const Wide inner = 0.79788456080286535588f * (v + 0.044715f * (v * v * v));
    return 0.5f * v * (1.0f + math::inlined::tanh(inner));
  }
};
struct GeluErf : SideAsItIs {  // 0.7071... = 1 / sqrt(2)
  TESSERA_INLINE Wide of(Wide v) { return 0.5f * v * (1.0f + math::inlined::erf(v * 0.70710678118654752440f)); }
};
struct Sigmoid : SideAsItIs {
  TESSERA_INLINE Wide of(Wide v) { return 1.0f / (1.0f + math::inlined::exp(-v)); }
};
struct SquaredRelu : SideAsItIs {  // So et al. 2021
  TESSERA_INLINE Wide of(Wide v) {
    const Wide positive = at_least(v, 0.0f);
    return positive * positive;
  }
};

struct Tanh : SideAsItIs {
  TESSERA_INLINE Wide of(Wide v) { return math::inlined::tanh(v); }
};

// Computes out[i] = fn(x[i], y[i]).
template <class Fn>
TESSERA_INLINE void map_wide(const float* x, const float* y, std::size_t n, float* out, Fn fn) {
  std::size_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) store(out + i, fn(load_wide(x + i), load_wide(y + i)));
  if (i == n) return;
  float some_x[kWideLanes] = {}, some_y[kWideLanes] = {};
  __builtin_memcpy(some_x, x + i, (n - i) * sizeof(float));
  __builtin_memcpy(some_y, y + i, (n - i) * sizeof(float));
  store(some_x, fn(load_wide(some_x), load_wide(some_y)));
  __builtin_memcpy(out + i, some_x, (n - i) * sizeof(float));
}

template <class Activation>
void activate(const float* x, std::size_t n, float* out) noexcept {
  map_wide(x, x, n, out, [](Wide v, Wide) TESSERA_LAMBDA { return Activation::of(v); });
}

template <class Activation>
void activate_gated(const float* gate, const float* up, std::size_t n, float* out) noexcept {
  map_wide(gate, up, n, out, [](Wide v, Wide by) TESSERA_LAMBDA { return Activation::of(v) * Activation::side(by); });
}

}  // namespace
}  // namespace elementwise

void add_elementwise(Kernels& kernels) noexcept {
  using namespace elementwise;
  kernels.elementwise = {
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .rope = rope,
      .activate = {activate<Silu>, activate<GeluTanh>, activate<GeluErf>, activate<ClampedSwiglu>, activate<Sigmoid>,
                   activate<SquaredRelu>, activate<Tanh>},
      .activate_gated = {activate_gated<Silu>, activate_gated<GeluTanh>, activate_gated<GeluErf>,
                         activate_gated<ClampedSwiglu>, activate_gated<Sigmoid>, activate_gated<SquaredRelu>, activate_gated<Tanh>},
      .add = add,
      .multiply = multiply,
      .l2_norm = l2_norm,
  };
}

}  // namespace tessera::cpu::TESSERA_ISA
