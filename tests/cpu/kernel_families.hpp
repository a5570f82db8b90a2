// The numeric families of matrix products (docs/reference/numerics.md) in scalar code, and weights packed as packed_layout.hpp
// says: what the kernels of every instruction set must equal bit for bit. Written from the documents, not the kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/float16.hpp"
#include "cpu/kernels.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "formats/formats.hpp"
#include "formats/kept_blocks.hpp"

namespace tessera::test {

using cpu::Family;
using cpu::FormLayout;
using cpu::PackedForm;

// ---- activations ----

struct Int8Row {
  std::vector<std::int8_t> q;
  std::vector<float> scale;  // a block
};

inline Int8Row quantised_row(const float* x, std::size_t n, std::size_t block) {
  Int8Row row;
  for (std::size_t b = 0; b < n; b += block) {
    float top = 0;
    bool finite = true;
    for (std::size_t i = 0; i < block; ++i) {
      finite = finite && std::isfinite(x[b + i]);
      top = std::max(top, std::fabs(x[b + i]));
    }
    const bool zero = !finite || top < 0x1p-100f;
    row.scale.push_back(!finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : top / 127.0f);
    for (std::size_t i = 0; i < block; ++i) {
      const float inverse = 127.0f / top;
      row.q.push_back(zero ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(x[b + i] * inverse)));
    }
  }
  return row;
}

inline int sum_of(const Int8Row& row, std::size_t from, std::size_t n) {
  int sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += row.q[from + i];
  return sum;
}

inline float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }
inline float rounded_to_bf16(float x) { return bf16_to_f32(f32_to_bf16(flushed(x))); }

// ---- weights ----

// A matrix as its integers and scales, or as its values where the form is not quantised.
struct FormWeights {
  PackedForm form{};
  std::size_t outputs = 0, inputs = 0;
  std::vector<float> values;                  // [outputs][inputs]: f32; f16 and bf16 as floats; quantised: decoded
  std::vector<std::uint8_t> q;                // [outputs][inputs]
  std::vector<std::uint16_t> d, m;            // [outputs][blocks]; m is dmin in superblocks
  std::vector<std::uint8_t> scale, min;       // [outputs][inputs / 32] or, 6 bits, [outputs][inputs / 16] signed
  std::vector<float> kept_d, kept_dmin;       // of kept superblocks [outputs][blocks]; of kept small blocks [outputs][inputs / 16]
  std::vector<std::byte> packed;

  [[nodiscard]] FormLayout layout() const { return cpu::form_layout(form); }
  [[nodiscard]] std::size_t blocks() const { return inputs / layout().block_values; }
};

namespace detail {

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline void set_bits(std::vector<std::byte>& bytes, std::size_t at, unsigned bits) {
  bytes[at] |= static_cast<std::byte>(bits);
}

// Nibble and fifth-bit places of k of a block of 32 or a quarter of 64, lane n; `low` and `more` are the parts' first bytes.
// Behind every two of 6 bits come the high bits of the next.
inline void put_nibbles(std::vector<std::byte>& packed, std::size_t low, std::size_t n, std::size_t k, unsigned q,
                        std::size_t half, unsigned bits) {
  const std::size_t v = k % half / 4, j = k % 4, line = bits == 6 ? v / 2 * 3 + v % 2 : v;
  set_bits(packed, low + line * 64 + n * 4 + j, k < half ? q & 15u : (q & 15u) << 4);
}

inline void put_fifth(std::vector<std::byte>& packed, std::size_t more, std::size_t n, std::size_t k, unsigned q) {
  const std::size_t bit = 4 * n + k % 4;
  set_bits(packed, more + k / 4 * 8 + bit / 8, ((q >> 4) & 1u) << (bit % 8));
}

inline void put_high_pair(std::vector<std::byte>& packed, std::size_t more, std::size_t n, std::size_t k, unsigned q) {
  const std::size_t v = k / 4, even = v % 8 / 2;
  const unsigned shift = (v % 2) * 4 + (v / 8) * 2;
  set_bits(packed, more + even * 192 + n * 4 + k % 4, ((q >> 4) & 3u) << shift);
}

inline void put_min_scales(std::vector<std::byte>& packed, std::size_t at, std::size_t n, const std::uint8_t* scale,
                           const std::uint8_t* min) {
  std::uint8_t bytes[12];
  for (std::size_t j = 0; j < 4; ++j) {
    bytes[j] = static_cast<std::uint8_t>(scale[j] | (scale[j + 4] >> 4) << 6);
    bytes[4 + j] = static_cast<std::uint8_t>(min[j] | (min[j + 4] >> 4) << 6);
    bytes[8 + j] = static_cast<std::uint8_t>((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
  }
  for (std::size_t word = 0; word < 3; ++word) std::memcpy(packed.data() + at + word * 64 + n * 4, bytes + 4 * word, 4);
}

}  // namespace detail

inline void pack(FormWeights& w) {
  const FormLayout layout = w.layout();
  const std::size_t panel_bytes = cpu::panel_bytes(w.form, w.inputs), width = w.form == PackedForm::f16 ? 32 : 16;
  w.packed.assign((w.outputs + width - 1) / width * panel_bytes + 64, std::byte{});
  for (std::size_t out = 0; out < w.outputs; ++out) {
    const std::size_t panel = out / width * panel_bytes, n = out % width;
    if (layout.bits == 0) {
      for (std::size_t k = 0; k < w.inputs; ++k) {
        const float value = w.values[out * w.inputs + k];
        if (w.form == PackedForm::f32) detail::put(w.packed, panel + (k * 16 + n) * 4, value);
        if (w.form == PackedForm::f16) detail::put(w.packed, panel + (k * 32 + n) * 2, f32_to_f16(value));
        if (w.form == PackedForm::bf16) detail::put(w.packed, panel + (k / 2 * 16 + n) * 4 + k % 2 * 2, f32_to_bf16(value));
      }
      continue;
    }
    const std::size_t block = layout.block_values;
    for (std::size_t b = 0; b < w.blocks(); ++b) {
      const std::size_t tile = panel + b * layout.tile_bytes, first = out * w.blocks() + b;
      for (std::size_t k = 0; k < block; ++k) {
        const unsigned q = w.q[out * w.inputs + b * block + k];
        if (layout.bits == 8) {
          detail::put(w.packed, tile + k / 4 * 64 + n * 4 + k % 4, static_cast<std::uint8_t>(q));
        } else {
          const std::size_t part = block == 32 ? 32 : 64;
          const std::size_t low = tile + layout.low(k / part, 0), more = tile + layout.more(k / part, 0);
          detail::put_nibbles(w.packed, low, n, k % part, q, part / 2, layout.bits);
          if (layout.bits == 5) detail::put_fifth(w.packed, more, n, k % part, q);
          if (layout.bits == 6) detail::put_high_pair(w.packed, more, n, k % part, q);
        }
      }
      if (block == 256 && layout.bits < 6) {
        detail::put_min_scales(w.packed, tile + layout.scales_at, n, &w.scale[first * 8], &w.min[first * 8]);
      }
      if (layout.bits == 6) {
        for (std::size_t j = 0; j < 16; ++j) {
          detail::put(w.packed, tile + layout.scales_at + j / 4 * 64 + n * 4 + j % 4, w.scale[first * 16 + j]);
        }
      }
      detail::put(w.packed, tile + layout.d_at + 2 * n, w.d[first]);
      if (layout.has_min) detail::put(w.packed, tile + layout.min_at + 2 * n, w.m[first]);
    }
  }
}

// The value of weight k of an output by its format's rule in f32.
inline float decoded(const FormWeights& w, std::size_t out, std::size_t k) {
  const FormLayout layout = w.layout();
  if (layout.bits == 0) return w.values[out * w.inputs + k];
  const std::size_t first = out * w.blocks() + k / layout.block_values;
  const float d = f16_to_f32(w.d[first]);
  const auto q = static_cast<float>(w.q[out * w.inputs + k] - layout.offset);
  if (layout.block_values == 32) {
    const float product = d * q;
    return layout.has_min ? product + f16_to_f32(w.m[first]) : product;
  }
  if (layout.bits == 6) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(w.scale[out * w.inputs / 16 + k / 16]));
    return scale * q;
  }
  const std::size_t sub = out * w.inputs / 32 + k / 32;
  const float scale = d * static_cast<float>(w.scale[sub]);
  const float product = scale * q;
  return product - f16_to_f32(w.m[first]) * static_cast<float>(w.min[sub]);
}

// A kept form's blocks: any bytes under scales of halves that `half` gives; with the parts and values that the format has.
template <class F>
void make_kept(FormWeights& w, std::mt19937& random, auto half) {
  w.q.resize(w.outputs * w.inputs);
  std::vector<std::byte> file(w.outputs * w.blocks() * F::block_bytes);
  for (std::size_t i = 0; i < w.outputs * w.blocks(); ++i) {
    const std::size_t out = i / w.blocks();
    std::byte* block = file.data() + i * F::block_bytes;
    for (std::size_t j = 0; j < F::block_bytes; ++j) block[j] = static_cast<std::byte>(random() >> 24);
    if (out == 1 || out == 2) std::memset(block, out == 1 ? 0xff : 0, F::block_bytes);
    if constexpr (F::dtype == DType::mxfp4) block[0] = static_cast<std::byte>(random() % 2 == 0 ? 120 + random() % 8 : random() % 250);
    if constexpr (F::dtype == DType::q2_k) put_half(block + 82, half());
    if constexpr (F::dtype != DType::mxfp4 && F::dtype != DType::nvfp4) set_d<F>(block, half());
    formats::Open<F> open{};
    F::open(block, open);
    std::copy_n(open.q.begin(), F::block_values, w.q.begin() + static_cast<std::ptrdiff_t>(i * F::block_values));
    F::decode(block, w.values.data() + i * F::block_values);
    if constexpr (F::block_values == 256) {
      for (const std::int8_t scale : open.scale) w.scale.push_back(static_cast<std::uint8_t>(scale));
      w.min.insert(w.min.end(), open.min.begin(), open.min.end());
      w.kept_d.push_back(open.d);
      w.kept_dmin.push_back(open.dmin);
    } else {
      w.kept_d.insert(w.kept_d.end(), open.d.begin(), open.d.begin() + F::block_values / 16);
    }
  }
  // As loading packs them: test_cpu_packing compares what is read back with these values.
  const backend::MatrixShape shape{.dtype = F::dtype, .outputs = w.outputs, .inputs = w.inputs};
  const std::size_t panel_bytes = cpu::panel_bytes(w.form, w.inputs), row_bytes = w.blocks() * F::block_bytes;
  w.packed.assign((w.outputs + 15) / 16 * panel_bytes + 64, std::byte{});
  for (std::size_t row = 0; row < w.outputs; row += 16) {
    cpu::pack_panel(shape, file.data() + row * row_bytes, std::min<std::size_t>(16, w.outputs - row),
                    w.packed.data() + row / 16 * panel_bytes);
  }
}

// How wild the scales are: ordinary, or all that a half can be short of NaN and infinity.
enum class Scales : std::uint8_t { ordinary, extreme };

inline FormWeights random_weights(PackedForm form, std::size_t outputs, std::size_t inputs, Scales scales,
                                  std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto half = [&]() -> std::uint16_t {
    if (scales == Scales::ordinary) {
      return f32_to_f16(std::uniform_real_distribution<float>(-0.02f, 0.02f)(random));
    }
    const auto bits = static_cast<std::uint16_t>(random());
    return (bits & 0x7c00u) == 0x7c00u ? static_cast<std::uint16_t>(bits & 0x83ffu) : bits;  // else a denormal
  };
  FormWeights w;
  w.form = form;
  w.outputs = outputs;
  w.inputs = inputs;
  const FormLayout layout = w.layout();
  w.values.resize(outputs * inputs);
  if (formats::visit_kept(form, [&]<class F>(std::type_identity<F>) { make_kept<F>(w, random, half); })) return w;
  if (layout.bits == 0) {
    for (float& value : w.values) {
      value = std::normal_distribution<float>(0, 0.1f)(random);
      if (scales == Scales::extreme) value = std::ldexp(value, static_cast<int>(random() % 120) - 80);
      if (form == PackedForm::f16) value = f16_to_f32(scales == Scales::extreme ? half() : f32_to_f16(value));
      if (form == PackedForm::bf16) value = bf16_to_f32(f32_to_bf16(value));
    }
  } else {
    w.q.resize(outputs * inputs);
    for (auto& q : w.q) q = static_cast<std::uint8_t>(random() >> (32 - layout.bits));
    const auto top = static_cast<std::uint8_t>((1u << layout.bits) - 1);  // for the largest sums
    if (outputs > 1) std::fill_n(w.q.begin(), inputs, top);
    if (outputs > 2) std::fill_n(w.q.begin() + static_cast<std::ptrdiff_t>(inputs), inputs, std::uint8_t{0});
    w.d.resize(outputs * w.blocks());
    w.m.resize(layout.has_min ? w.d.size() : 0);
    for (auto& d : w.d) d = half();
    for (auto& m : w.m) m = half();
    if (layout.block_values == 256) {
      w.scale.resize(outputs * inputs / (layout.bits == 6 ? 16 : 32));
      w.min.resize(layout.bits == 6 ? 0 : w.scale.size());
      for (auto& s : w.scale) s = static_cast<std::uint8_t>(random() & (layout.bits == 6 ? 255u : 63u));
      for (auto& m : w.min) m = static_cast<std::uint8_t>(random() & 63u);
    }
    for (std::size_t i = 0; i < w.values.size(); ++i) w.values[i] = decoded(w, i / inputs, i % inputs);
  }
  pack(w);
  return w;
}

// ---- products: one output of one row ----

inline float f32_output(const FormWeights& w, std::size_t out, const float* x) {
  float acc = 0;
  for (std::size_t k = 0; k < w.inputs; ++k) acc = std::fma(x[k], w.values[out * w.inputs + k], acc);
  return acc;
}

inline float int8_output_32(const FormWeights& w, std::size_t out, const Int8Row& x) {
  const FormLayout layout = w.layout();
  float acc = 0;
  for (std::size_t b = 0; b < w.blocks(); ++b) {
    std::int32_t dot = 0;
    for (std::size_t i = 32 * b; i < 32 * b + 32; ++i) dot += (w.q[out * w.inputs + i] - layout.offset) * x.q[i];
    const std::size_t first = out * w.blocks() + b;
    const float scale = f16_to_f32(w.d[first]) * x.scale[b];
    acc = std::fma(static_cast<float>(dot), scale, acc);
    if (!layout.has_min) continue;
    const float min_scale = f16_to_f32(w.m[first]) * x.scale[b];
    acc = std::fma(static_cast<float>(sum_of(x, 32 * b, 32)), min_scale, acc);
  }
  return acc;
}

inline float int8_output_256(const FormWeights& w, std::size_t out, const Int8Row& x) {
  const FormLayout layout = w.layout();
  const std::size_t sub = layout.bits == 6 ? 16 : 32;
  float acc = 0;
  for (std::size_t b = 0; b < w.blocks(); ++b) {
    std::int32_t isum = 0, msum = 0;
    for (std::size_t k = 256 * b; k < 256 * b + 256; k += sub) {
      std::int32_t dot = 0;
      for (std::size_t i = k; i < k + sub; ++i) dot += (w.q[out * w.inputs + i] - layout.offset) * x.q[i];
      const std::uint8_t scale = w.scale[(out * w.inputs + k) / sub];
      isum += dot * (layout.bits == 6 ? static_cast<std::int8_t>(scale) : scale);
      if (layout.has_min) msum += w.min[(out * w.inputs + k) / sub] * sum_of(x, k, sub);
    }
    const std::size_t first = out * w.blocks() + b;
    acc = std::fma(static_cast<float>(isum), f16_to_f32(w.d[first]) * x.scale[b], acc);
    if (layout.has_min) acc = std::fma(static_cast<float>(-msum), f16_to_f32(w.m[first]) * x.scale[b], acc);
  }
  return acc;
}

// A step of float for each 32 values of k that share a scale, or for each 16.
inline float int8_output_kept_small(const FormWeights& w, std::size_t out, const Int8Row& x) {
  const std::size_t step = w.form == PackedForm::kept_nvfp4 ? 16 : 32;
  float acc = 0;
  for (std::size_t k = 0; k < w.inputs; k += step) {
    std::int32_t dot = 0;
    for (std::size_t i = k; i < k + step; ++i) dot += (w.q[out * w.inputs + i] - 128) * x.q[i];
    acc = std::fma(static_cast<float>(dot), w.kept_d[(out * w.inputs + k) / 16] * x.scale[k / 32], acc);
  }
  return acc;
}

inline float int8_output_kept_256(const FormWeights& w, std::size_t out, const Int8Row& x) {
  float acc = 0;
  for (std::size_t b = 0; b < w.blocks(); ++b) {
    std::int32_t isum = 0, msum = 0;
    for (std::size_t k = 256 * b; k < 256 * b + 256; k += 16) {
      const std::size_t sub = (out * w.inputs + k) / 16;
      std::int32_t dot = 0;
      for (std::size_t i = k; i < k + 16; ++i) dot += (w.q[out * w.inputs + i] - 128) * x.q[i];
      isum += dot * static_cast<std::int8_t>(w.scale[sub]);
      msum += w.min[sub] * sum_of(x, k, 16);
    }
    const std::size_t first = out * w.blocks() + b;
    acc = std::fma(static_cast<float>(isum), w.kept_d[first] * x.scale[b], acc);
    if (w.layout().has_min) acc = std::fma(static_cast<float>(-msum), w.kept_dmin[first] * x.scale[b], acc);
  }
  return acc;
}

// Tiny results are 0, where tiny is what rounds to less than the least normal number as if exponents had no end (x86's rule;
// Intel SDM volume 1, 11.5.2.4): half a unit below it still rounds up to it.
inline float flushing_fma(float a, float b, float c) {
  a = flushed(a), b = flushed(b), c = flushed(c);
  const float rounded = std::fma(a, b, c);
  if (std::fabs(rounded) > 0x1p-126f) return rounded;  // nothing to flush: nearly all, and without the slow numbers below
  const long double exact = static_cast<long double>(a) * b + c;  // but for what is far below a unit
  if (exact != 0 && std::fabs(exact) < 0x1p-126L - 0x1p-151L) return std::copysign(0.0f, exact < 0 ? -1.0f : 1.0f);
  return std::fabs(exact) < 0x1p-126L && rounded != 0 ? std::copysign(0x1p-126f, rounded) : rounded;
}

// Two chains over 32 values of k from `k`, added to acc; values are bf16 already.
inline void bf16_step(const float* x, const float* w, std::size_t n, float& acc) {
  float chain[2] = {0, 0};
  for (std::size_t i = 0; i < 32; ++i) chain[i % 2] = flushing_fma(i < n ? x[i] : 0, i < n ? w[i] : 0, chain[i % 2]);
  acc = flushed(acc + flushed(chain[0] + chain[1]));
}

inline float bf16_output(const FormWeights& w, std::size_t out, const float* x) {
  float acc = 0;
  for (std::size_t k = 0; k < w.inputs; k += 32) {
    const std::size_t n = std::min<std::size_t>(32, w.inputs - k);
    float a[32], b[32];
    for (std::size_t i = 0; i < n; ++i) a[i] = rounded_to_bf16(x[k + i]);
    for (std::size_t i = 0; i < n; ++i) b[i] = rounded_to_bf16(w.values[out * w.inputs + k + i]);
    bf16_step(a, b, n, acc);
  }
  return acc;
}

inline float bf16x3_output(const FormWeights& w, std::size_t out, const float* x) {
  float acc = 0;
  for (std::size_t k = 0; k < w.inputs; k += 32) {
    const std::size_t n = std::min<std::size_t>(32, w.inputs - k);
    float x_high[32], x_low[32], w_high[32], w_low[32];
    for (std::size_t i = 0; i < n; ++i) {
      const float weight = w.values[out * w.inputs + k + i];
      x_high[i] = rounded_to_bf16(x[k + i]);
      x_low[i] = rounded_to_bf16(x[k + i] - x_high[i]);
      w_high[i] = rounded_to_bf16(weight);
      w_low[i] = rounded_to_bf16(weight - w_high[i]);
    }
    bf16_step(x_low, w_high, n, acc);
    bf16_step(x_high, w_low, n, acc);
    bf16_step(x_high, w_high, n, acc);
  }
  return acc;
}

// One chain over pairs of k, the odd one first.
inline float bf16_pairs_output(const FormWeights& w, std::size_t out, const float* x) {
  float acc = 0;
  const auto add = [&](std::size_t k) {
    const float a = k < w.inputs ? rounded_to_bf16(x[k]) : 0, b = k < w.inputs ? w.values[out * w.inputs + k] : 0;
    acc = flushing_fma(a, rounded_to_bf16(b), acc);
  };
  for (std::size_t k = 0; k < w.inputs; k += 2) add(k + 1), add(k);
  return acc;
}

// All outputs of one row.
inline std::vector<float> expected_outputs(Family family, const FormWeights& w, const float* x) {
  std::vector<float> out(w.outputs);
  const std::size_t block = w.layout().block_values;
  Int8Row row;
  const bool kept = w.layout().kept;
  if (family == Family::int8) row = quantised_row(x, w.inputs, block == 256 ? 256 : 32);
  for (std::size_t i = 0; i < w.outputs; ++i) {
    switch (family) {
      case Family::int8:
        if (kept) {
          out[i] = block == 256 ? int8_output_kept_256(w, i, row) : int8_output_kept_small(w, i, row);
          break;
        }
        out[i] = block == 32 ? int8_output_32(w, i, row) : int8_output_256(w, i, row); break;
      case Family::bf16: out[i] = bf16_output(w, i, x); break;
      case Family::bf16x3: out[i] = bf16x3_output(w, i, x); break;
      case Family::bf16_pairs: out[i] = bf16_pairs_output(w, i, x); break;
      default: out[i] = f32_output(w, i, x); break;
    }
  }
  return out;
}

}  // namespace tessera::test
