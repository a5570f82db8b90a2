// What kernels of tiles compute, one value at a time: random packed weights and activations, and the arithmetic of the families
// (docs/reference/numerics.md) by them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "core/float16.hpp"
#include "cpu/kernels.hpp"
#include "cpu/products/open_tile.hpp"
#include "cpu/products/packed_layout.hpp"
#include "cpu/products/prepared_rows.hpp"
#include "formats/kept_blocks.hpp"

namespace tessera::cpu::tile_families {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
inline void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

inline float half(const std::byte* at) { return f16_to_f32(load<std::uint16_t>(at)); }

// ---- Packed weights, random, and what they say ----

// Any bytes but for the scales.
inline void fill_kept(PackedForm form, std::size_t tiles, std::mt19937& random, std::byte* to) {
  formats::visit_kept(form, [&]<class F>(std::type_identity<F>) {
    for (std::size_t i = 0; i < tiles * 16; ++i) {
      std::byte block[F::block_bytes];
      for (std::byte& byte : block) byte = static_cast<std::byte>(random());
      test::set_size<F>(block, 0.05f);
      keep_block(form, block, i % 16, to + i / 16 * form_layout(form).tile_bytes);
    }
  });
}

inline void fill_weights(PackedForm form, std::size_t inputs, std::size_t panels, std::mt19937& random, std::byte* to) {
  const FormLayout layout = form_layout(form);
  const std::size_t tiles = panels * (panel_bytes(form, inputs) / layout.tile_bytes);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  if (layout.kept) return fill_kept(form, tiles, random, to);
  for (std::size_t tile = 0; tile < tiles; ++tile, to += layout.tile_bytes) {
    if (layout.bits == 0) {
      const std::size_t k = tile % (tiles / panels) * 32;
      const bool pairs = form == PackedForm::bf16;
      for (std::size_t i = 0; i < layout.tile_bytes / 2; ++i) {
        const float value = k + (pairs ? i / 32 * 2 + i % 2 : i / 32) < inputs ? normal(random) : 0.0f;
        store(to + 2 * i, pairs ? f32_to_bf16(value) : f32_to_f16(value));
      }
      continue;
    }
    for (std::size_t i = 0; i < layout.tile_bytes; ++i) to[i] = static_cast<std::byte>(random());
    for (std::size_t n = 0; n < 16; ++n) {
      store(to + layout.d_at + 2 * n, f32_to_f16(normal(random)));
      if (layout.has_min) store(to + layout.min_at + 2 * n, f32_to_f16(normal(random)));
    }
  }
}

// Integer k of output n of a panel, as stored.
inline int quant(PackedForm form, const std::byte* panel, std::size_t k, std::size_t n) {
  const FormLayout layout = form_layout(form);
  const std::byte* tile = panel + k / layout.block_values * layout.tile_bytes;
  k %= layout.block_values;
  const std::size_t g = k / 4, j = k % 4, lane = 4 * n + j;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(tile[at]); };
  if (layout.bits == 8) return static_cast<int>(byte(g * 64 + lane));
  unsigned q = 0;
  if (layout.block_values == 32) {
    q = byte(layout.low(0, g % 4) + lane) >> (g / 4 * 4) & 15;
  } else {
    q = byte(layout.low(g / 16, g % 8) + lane) >> (g % 16 / 8 * 4) & 15;
  }
  if (layout.bits == 5) {
    q |= static_cast<unsigned>(load<std::uint64_t>(tile + layout.more(g / 16, g % 16)) >> lane & 1) << 4;
  }
  if (layout.bits == 6) {
    const std::size_t v = g % 8, shift = (g % 2 * 2 + g % 16 / 8) * 2;
    q |= (byte(layout.more(g / 16, v) + lane) >> shift & 3) << 4;
  }
  return static_cast<int>(q);
}

// Scale and minimum of sub-block j of output n in a tile of 256.
struct SubScale {
  int scale, min;
};

inline SubScale sub_scale(PackedForm form, const std::byte* tile, std::size_t j, std::size_t n) {
  const FormLayout layout = form_layout(form);
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(tile[layout.scales_at + i / 4 * 64 + 4 * n + i % 4]);
  };
  if (layout.bits == 6) return {static_cast<std::int8_t>(byte(j)), 0};
  if (j < 4) return {static_cast<int>(byte(j) & 63), static_cast<int>(byte(j + 4) & 63)};
  return {static_cast<int>((byte(j + 4) & 15) | (byte(j - 4) >> 6 << 4)),
          static_cast<int>((byte(j + 4) >> 4) | (byte(j) >> 6 << 4))};
}

// ---- Activations, random ----

inline void fill_row(InputForm form, std::size_t inputs, std::mt19937& random, std::byte* to) {
  const RowLayout layout = row_layout(form, inputs);
  std::normal_distribution<float> normal;
  if (form == InputForm::bf16 || form == InputForm::bf16x2) {
    for (std::size_t k = 0; k < inputs; ++k) {
      const float value = normal(random);
      const std::uint16_t high = f32_to_bf16(value);
      store(to + 2 * k, high);
      if (form == InputForm::bf16x2) store(to + layout.low + 2 * k, f32_to_bf16(value - bf16_to_f32(high)));
    }
    return;
  }
  for (std::size_t k = 0; k < inputs; ++k) to[k] = static_cast<std::byte>(static_cast<int>(random() % 255) - 127);
  const auto sum = [&](std::size_t begin, std::size_t size) {
    int total = 0;
    for (std::size_t i = 0; i < size; ++i) total += static_cast<std::int8_t>(to[begin + i]);
    return total;
  };
  const std::size_t block = form == InputForm::int8x32 ? 32 : 256;
  for (std::size_t b = 0; b < inputs / block; ++b) {
    store(to + layout.scales + 4 * b, std::fabs(normal(random)) * 0.02f);
    if (form == InputForm::int8x32) {
      store(to + layout.sums + 4 * b, sum(32 * b, 32));
      continue;
    }
    for (std::size_t i = 0; i < 16; ++i) {
      store(to + layout.sums + 2 * (16 * b + i), static_cast<std::int16_t>(sum(256 * b + 16 * i, 16)));
    }
    for (std::size_t i = 0; i < 8; ++i) {
      const int total = sum(256 * b + 32 * i, 32), low = ((total + 64) & 127) - 64;
      to[layout.parts + 16 * b + i] = static_cast<std::byte>(low);
      to[layout.parts + 16 * b + 8 + i] = static_cast<std::byte>((total - low) / 128);
    }
  }
}

// ---- The families, one value at a time ----

inline float int8_block32(PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x, std::size_t inputs) {
  const FormLayout layout = form_layout(form);
  const RowLayout row = row_layout(InputForm::int8x32, inputs);
  float acc = 0.0f;
  for (std::size_t b = 0; b < inputs / 32; ++b) {
    const std::byte* tile = panel + b * layout.tile_bytes;
    std::int32_t dot = 0;
    for (std::size_t k = 32 * b; k < 32 * b + 32; ++k) {
      dot += (quant(form, panel, k, n) - layout.offset) * static_cast<std::int8_t>(x[k]);
    }
    const float scale = load<float>(x + row.scales + 4 * b);
    const float product = half(tile + layout.d_at + 2 * n) * scale;
    acc = std::fma(static_cast<float>(dot), product, acc);
    if (layout.has_min) {
      const float m = half(tile + layout.min_at + 2 * n) * scale;
      acc = std::fma(static_cast<float>(load<std::int32_t>(x + row.sums + 4 * b)), m, acc);
    }
  }
  return acc;
}

inline float int8_block256(PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x, std::size_t inputs) {
  const FormLayout layout = form_layout(form);
  const RowLayout row = row_layout(InputForm::int8x256, inputs);
  const std::size_t size = layout.bits == 6 ? 16 : 32;
  float acc = 0.0f;
  for (std::size_t b = 0; b < inputs / 256; ++b) {
    const std::byte* tile = panel + b * layout.tile_bytes;
    std::int32_t dots = 0, mins = 0;
    for (std::size_t j = 0; j < 256 / size; ++j) {
      const SubScale sub = sub_scale(form, tile, j, n);
      std::int32_t dot = 0, sum = 0;
      for (std::size_t k = 256 * b + size * j; k < 256 * b + size * (j + 1); ++k) {
        const auto q = static_cast<std::int8_t>(x[k]);
        dot += (quant(form, panel, k, n) - layout.offset) * q;
        sum += q;
      }
      dots += sub.scale * dot;
      mins += sub.min * sum;
    }
    const float scale = load<float>(x + row.scales + 4 * b), d = half(tile + layout.d_at + 2 * n) * scale;
    acc = std::fma(static_cast<float>(dots), d, acc);
    if (layout.has_min) {
      const float dmin = half(tile + layout.min_at + 2 * n) * scale;
      acc = std::fma(static_cast<float>(-mins), dmin, acc);
    }
  }
  return acc;
}

// Of forms that keep the file's blocks: `tiles` are a panel's, opened.
inline float int8_kept_block32(const OpenTile* tiles, std::size_t n, const std::byte* x, std::size_t inputs) {
  const RowLayout row = row_layout(InputForm::int8x32, inputs);
  float acc = 0.0f;
  for (std::size_t b = 0; b < inputs / 32; ++b) {
    std::int32_t dot = 0;
    for (std::size_t k = 0; k < 32; ++k) dot += (tiles[b].q[k / 4][n][k % 4] - 128) * static_cast<std::int8_t>(x[32 * b + k]);
    acc = std::fma(static_cast<float>(dot), tiles[b].d[0][n] * load<float>(x + row.scales + 4 * b), acc);
  }
  return acc;
}

inline float int8_kept_block256(PackedForm form, const OpenTile* tiles, std::size_t n, const std::byte* x, std::size_t inputs) {
  const RowLayout row = row_layout(InputForm::int8x256, inputs);
  float acc = 0.0f;
  for (std::size_t b = 0; b < inputs / 256; ++b) {
    const OpenTile& tile = tiles[b];
    std::int32_t dots = 0, mins = 0;
    for (std::size_t k = 0; k < 256; ++k) {
      const auto q = static_cast<std::int8_t>(x[256 * b + k]);
      dots += tile.scale[k / 16][n] * (tile.q[k / 4][n][k % 4] - 128) * q;
      if (form_layout(form).has_min) mins += tile.min[k / 16][n] * q;
    }
    const float scale = load<float>(x + row.scales + 4 * b);
    acc = std::fma(static_cast<float>(dots), tile.d[0][n] * scale, acc);
    if (form_layout(form).has_min) acc = std::fma(static_cast<float>(-mins), tile.dmin[n] * scale, acc);
  }
  return acc;
}

inline float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }

inline std::uint16_t rounded(float value) { return f32_to_bf16(flush(value)); }

// A weight as its format decodes it.
inline float weight(PackedForm form, const std::byte* panel, std::size_t k, std::size_t n) {
  const FormLayout layout = form_layout(form);
  const std::byte* tile = panel + k / layout.block_values * layout.tile_bytes;
  if (layout.bits == 0) {
    const std::size_t i = k % 32;
    if (form == PackedForm::f16) return half(tile + i * 64 + n * 2);
    return bf16_to_f32(load<std::uint16_t>(tile + i / 2 * 64 + n * 4 + i % 2 * 2));
  }
  const float d = half(tile + layout.d_at + 2 * n);
  const auto q = static_cast<float>(quant(form, panel, k, n) - layout.offset);
  const float m = layout.has_min ? half(tile + layout.min_at + 2 * n) : 0.0f;
  if (layout.block_values == 32) return layout.has_min ? d * q + m : d * q;
  const SubScale sub = sub_scale(form, tile, k % 256 / (layout.bits == 6 ? 16 : 32), n);
  const float product = d * static_cast<float>(sub.scale) * q;
  return layout.has_min ? product - m * static_cast<float>(sub.min) : product;
}

// One step of 32 values of k as the tile unit has it: even and odd k apart, denormals flushed.
inline float bf16_step(const float* x, const float* w, float acc) {
  float sums[2] = {};
  for (std::size_t k = 0; k < 32; ++k) sums[k % 2] = flush(std::fma(flush(x[k]), flush(w[k]), sums[k % 2]));
  return flush(acc + flush(sums[0] + sums[1]));
}

inline float bf16(Family family, PackedForm form, const std::byte* panel, std::size_t n, const std::byte* x,
           std::size_t inputs) {
  const std::size_t low = row_layout(InputForm::bf16x2, inputs).low;
  float acc = 0.0f;
  for (std::size_t begin = 0; begin < inputs; begin += 32) {
    float x_high[32] = {}, x_low[32] = {}, w_high[32] = {}, w_low[32] = {};
    for (std::size_t k = begin; k < std::min(inputs, begin + 32); ++k) {
      const std::size_t i = k - begin;
      const float w = weight(form, panel, k, n);
      w_high[i] = bf16_to_f32(form == PackedForm::bf16 ? f32_to_bf16(w) : rounded(w));
      x_high[i] = bf16_to_f32(load<std::uint16_t>(x + 2 * k));
      if (family != Family::bf16x3) continue;
      w_low[i] = bf16_to_f32(rounded(w - w_high[i]));
      x_low[i] = bf16_to_f32(load<std::uint16_t>(x + low + 2 * k));
    }
    if (family == Family::bf16x3) {
      acc = bf16_step(x_low, w_high, acc);
      acc = bf16_step(x_high, w_low, acc);
    }
    acc = bf16_step(x_high, w_high, acc);
  }
  return acc;
}

// Products of a panel, an output at a time.
class Panel {
 public:
  Panel(Family family, PackedForm form, const std::byte* panel, std::size_t inputs) : family_(family), form_(form), panel_(panel), inputs_(inputs) {
    const FormLayout layout = form_layout(form);
    if (!layout.kept) return;
    opened_.resize(inputs / layout.block_values);
    for (std::size_t b = 0; b < opened_.size(); ++b) open_tile(form, panel + b * layout.tile_bytes, opened_[b]);
  }

  [[nodiscard]] float operator()(std::size_t n, const std::byte* x) const {
    if (family_ != Family::int8) return bf16(family_, form_, panel_, n, x, inputs_);
    const bool superblocks = form_layout(form_).block_values == 256;
    if (opened_.empty()) return (superblocks ? int8_block256 : int8_block32)(form_, panel_, n, x, inputs_);
    return superblocks ? int8_kept_block256(form_, opened_.data(), n, x, inputs_) : int8_kept_block32(opened_.data(), n, x, inputs_);
  }

 private:
  Family family_;
  PackedForm form_;
  const std::byte* panel_;
  std::size_t inputs_;
  std::vector<OpenTile> opened_;
};

}  // namespace tessera::cpu::tile_families
