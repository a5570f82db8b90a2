// The families of attention (docs/reference/numerics.md) in scalar code, over keys and values as the cache holds them: what the
// kernels of every instruction set must equal bit for bit. Written from the document, not the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <tessera/core/dtype.hpp>

#include "core/math_inline.hpp"
#include "cpu/kernel_families.hpp"
#include "cpu/reference.hpp"
#include "kv/held_types.hpp"
#include "kv/rotated.hpp"

namespace tessera::test {

struct AttentionReference {
  Family family;
  DType type;  // of the cache
  std::size_t key_dim, value_dim;
  float scale;
  std::uint64_t window;
  float softcap = 0.0f;               // of the scores; 0: none
  std::optional<float> sink = {};     // of the head
  std::uint64_t globals = 0;          // the first keys, which are seen beside the window; 0: none

  [[nodiscard]] std::vector<float> operator()(const float* q, std::uint64_t position, const std::vector<HeldRow>& keys,
                                              const std::vector<HeldRow>& values) const {
    const std::uint64_t own = window != 0 && position + 1 > window ? position + 1 - window : 0;
    struct Part {
      std::uint64_t from, to;
    };
    std::vector<Part> parts;  // visible keys of a chunk: of those before the window, then of the window's
    for (std::uint64_t from = 0; from < std::min(own, globals); from += 256) parts.push_back({from, std::min({own, globals, from + 256})});
    for (std::uint64_t from = own; from <= position; from = parts.back().to) parts.push_back({from, std::min(position + 1, from / 256 * 256 + 256)});
    std::vector<float> query(q, q + key_dim);
    const DType of_keys = held_as(type, kv::KeyOrValue::key), of_values = held_as(type, kv::KeyOrValue::value);
    if (is_held_rotated(of_keys)) query = rotated(query, true);
    std::vector<float> total;
    float total_max = 0, total_sum = 0;
    for (const auto& [from, to] : parts) {
      const std::uint64_t chunk = from / 256 * 256;
      std::vector<float> scores, weights(256, 0.0f);
      float maximum = -std::numeric_limits<float>::infinity();
      for (std::uint64_t j = from; j < to; ++j) {
        float score = product(query, keys[j].values);
        if (has_scale(of_keys)) score = score * keys[j].scale;
        const float log2e = 0x1.715476p+0f;
        scores.push_back(softcap == 0.0f ? score * (scale * log2e)
                                         : math::inlined::tanh(score * (scale / softcap)) * (softcap * log2e));
        if (scores.back() > maximum) maximum = scores.back();
      }
      for (std::uint64_t j = from; j < to; ++j) weights[j - chunk] = exp2(scores[j - from] - maximum);
      const float sum = reference_lane_sum(weights);
      std::vector<float> partial(value_dim);
      const std::uint64_t first_group = from / 32 * 32, end_group = (to + 31) / 32 * 32;
      for (std::size_t d = 0; d < value_dim; ++d) {
        std::vector<float> p, v;  // groups of 32 keys, those that are not visible as zeros
        for (std::uint64_t j = first_group; j < end_group; ++j) {
          const bool visible = j >= from && j < to;
          if (family == Family::f32 && !visible) continue;
          p.push_back(!visible ? 0 : has_scale(of_values) ? weights[j - chunk] * values[j].scale : weights[j - chunk]);
          v.push_back(visible ? values[j].values[d] : 0);
        }
        partial[d] = product(p, v) + 0.0f;
      }
      if (total.empty()) {
        total = partial, total_max = maximum, total_sum = sum;
        continue;
      }
      const float merged = std::max(maximum, total_max);
      const float keep = exp2(total_max - merged), take = exp2(maximum - merged);
      for (std::size_t d = 0; d < value_dim; ++d) total[d] = total[d] * keep + partial[d] * take;
      total_sum = total_sum * keep + sum * take;
      total_max = merged;
    }
    if (sink) {
      const float logit = *sink * 0x1.715476p+0f, merged = std::max(total_max, logit), keep = exp2(total_max - merged);
      for (float& x : total) x *= keep;
      total_sum = total_sum * keep + exp2(logit - merged);
    }
    for (float& x : total) x /= total_sum;
    return is_held_rotated(of_values) ? rotated(total, true) : total;
  }

 private:
  // Of numbers up to 0.
  [[nodiscard]] static float exp2(float x) {
    if (x < -125.0f || std::isnan(x)) return std::isnan(x) ? x : 0.0f;
    const float n = std::nearbyint(x), r = x - n;
    float p = 0x1.5bba10p-10f;
    for (const float c : {0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f, 0x1.62e42ap-1f, 1.0f}) p = std::fma(p, r, c);
    return std::ldexp(p, static_cast<int>(n));
  }

  // One step of 32 of the bf16 families: an even and an odd chain.
  [[nodiscard]] static float step(float acc, const float* a, const float* b) {
    float chain[2] = {};
    for (std::size_t i = 0; i < 32; ++i) chain[i % 2] = flushing_fma(a[i], b[i], chain[i % 2]);
    return flushed(acc + flushed(chain[0] + chain[1]));
  }

  [[nodiscard]] float product(std::vector<float> a, std::vector<float> b) const {
    float acc = 0;
    if (family == Family::f32) {
      for (std::size_t i = 0; i < a.size(); ++i) acc = std::fma(a[i], b[i], acc);
      return acc;
    }
    a.resize((a.size() + 31) / 32 * 32), b.resize(a.size());
    std::vector<float> low_a(a.size()), low_b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float high_a = rounded_to_bf16(a[i]), high_b = rounded_to_bf16(b[i]);
      low_a[i] = rounded_to_bf16(a[i] - high_a), low_b[i] = rounded_to_bf16(b[i] - high_b);
      a[i] = high_a, b[i] = high_b;
    }
    if (family == Family::bf16_pairs) {
      for (std::size_t i = 0; i < a.size(); i += 2) {
        for (const std::size_t j : {i + 1, i}) acc = flushing_fma(a[j], b[j], acc);
      }
      return acc;
    }
    for (std::size_t i = 0; i < a.size(); i += 32) {
      if (family == Family::bf16x3) {
        acc = step(acc, &low_a[i], &b[i]);
        acc = step(acc, &a[i], &low_b[i]);
      }
      acc = step(acc, &a[i], &b[i]);
    }
    return acc;
  }
};

}  // namespace tessera::test
