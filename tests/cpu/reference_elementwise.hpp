// The operations that are neither a product nor attention, said plainly (docs/reference/numerics.md): sums in 16 lanes, element mod
// 16, that a fixed tree joins; every product and sum rounded by itself. Kernels must equal it bit for bit.
#pragma once

#include <cmath>
#include <cstddef>

#include "backend/backend.hpp"
#include "core/math_inline.hpp"
#include "cpu/vector.hpp"

namespace tessera::test::reference {

using cpu::tree_sum;

template <class Term>
inline float lane_sum(std::size_t n, Term term) noexcept {
  float lanes[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t lane = 0; lane < 16; ++lane) lanes[lane] += term(i + lane);
  }
  for (; i < n; ++i) lanes[i % 16] += term(i);
  return tree_sum(lanes);
}

template <class Fn>
inline void map(const float* x, std::size_t n, float* out, Fn fn) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = fn(x[i]);
}

inline void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) noexcept {
  const float mean = lane_sum(n, [x](std::size_t i) { return x[i] * x[i]; }) / static_cast<float>(n);
  const float scale = 1.0f / std::sqrt(mean + eps);
  for (std::size_t i = 0; i < n; ++i) out[i] = (x[i] * scale) * weight[i];
}

inline void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out) noexcept {
  const float mean = lane_sum(n, [x](std::size_t i) { return x[i]; }) / static_cast<float>(n);
  const float variance = lane_sum(n, [x, mean](std::size_t i) { return (x[i] - mean) * (x[i] - mean); }) /
                         static_cast<float>(n);
  const float scale = 1.0f / std::sqrt(variance + eps);
  for (std::size_t i = 0; i < n; ++i) out[i] = ((x[i] - mean) * scale) * weight[i];
  if (bias != nullptr) {
    for (std::size_t i = 0; i < n; ++i) out[i] += bias[i];
  }
}

inline void rope(const float* table, std::size_t n_pairs, bool interleaved, float* head) noexcept {
  const std::size_t step = interleaved ? 2 : 1;           // from pair to pair
  const std::size_t partner = interleaved ? 1 : n_pairs;  // from a pair's first element to its second
  for (std::size_t i = 0; i < n_pairs; ++i) {
    const float cosine = table[2 * i];
    const float sine = table[2 * i + 1];
    float& a = head[i * step];
    float& b = head[i * step + partner];
    const float rotated = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = rotated;
  }
}

inline void activate(ActivationKind kind, const float* x, std::size_t n, float* out) noexcept {
  switch (kind) {
    case ActivationKind::silu:
      return map(x, n, out, [](float v) { return v / (1.0f + math::inlined::exp(-v)); });
    case ActivationKind::gelu_tanh:  // Hendrycks and Gimpel 2016, the tanh form; 0.7978... = sqrt(2 / pi)
      return map(x, n, out, [](float v) {
        const float inner = 0.79788456080286535588f * (v + 0.044715f * (v * v * v));
        return 0.5f * v * (1.0f + math::inlined::tanh(inner));
      });
    case ActivationKind::clamped_swiglu:  // OpenAI 2025; a NaN stays
      return map(x, n, out, [](float v) {
        const float clamped = v > 7.0f ? 7.0f : v;
        return clamped / (1.0f + math::inlined::exp(-(1.702f * clamped)));
      });
    case ActivationKind::sigmoid: return map(x, n, out, [](float v) { return 1.0f / (1.0f + math::inlined::exp(-v)); });
    case ActivationKind::squared_relu:  // So et al. 2021; a NaN stays
      return map(x, n, out, [](float v) {
        const float positive = v < 0.0f ? 0.0f : v;
        return positive * positive;
      });
    case ActivationKind::tanh: return map(x, n, out, [](float v) { return math::inlined::tanh(v); });
    case ActivationKind::gelu_erf:  // 0.7071... = 1 / sqrt(2)
      return map(x, n, out, [](float v) { return 0.5f * v * (1.0f + math::inlined::erf(v * 0.70710678118654752440f)); });
  }
}

// out = act(gate) * up, of clamped_swiglu as it says.
inline void activate_gated(ActivationKind kind, const float* gate, const float* up, std::size_t n, float* out) noexcept {
  activate(kind, gate, n, out);
  for (std::size_t i = 0; i < n; ++i) {
    float side = up[i];
    if (kind == ActivationKind::clamped_swiglu) side = (side > 7.0f ? 7.0f : side < -7.0f ? -7.0f : side) + 1.0f;
    out[i] = out[i] * side;
  }
}

}  // namespace tessera::test::reference
