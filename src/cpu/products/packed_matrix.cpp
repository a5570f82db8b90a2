#include "cpu/products/packed_matrix.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/float16.hpp"
#include "cpu/products/open_tile.hpp"
#include "formats/formats.hpp"

namespace tessera::cpu {

namespace {

using formats::Block256;
using formats::Block32;

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

// Returns four consecutive integers as the 32-bit word of a lane.
std::uint32_t word(const std::uint8_t* q) noexcept {
  std::uint32_t value;
  std::memcpy(&value, q, sizeof value);
  return value;
}

// Returns the fifth bits of four integers: the multiplication moves bit 4 of byte j to bit 24 + j.
std::uint64_t fifth_bits(const std::uint8_t* q) noexcept {
  return ((word(q) >> 4 & 0x01010101u) * 0x01020408u) >> 24 & 15u;
}

// Writes the fifth bits of output n. In each group g, the bits of the 16 outputs make one u64; output n has the bits from bit 4 n on.
template <std::size_t groups>
void add_fifth_bits(const std::uint8_t* q, std::size_t n, std::byte* words) noexcept {
  for (std::size_t g = 0; g < groups; ++g) {
    const std::uint64_t before = n == 0 ? 0 : load<std::uint64_t>(words + 8 * g);
    store(words + 8 * g, before | fifth_bits(q + 4 * g) << (4 * n));
  }
}

// ---- Plain numbers ----

constexpr std::size_t plain_bytes(PackedForm form) noexcept { return form == PackedForm::f32 ? 4 : 2; }

// Returns where a panel has the weight of output n for input k: the offset in bytes.
constexpr std::size_t plain_at(PackedForm form, std::size_t k, std::size_t n) noexcept {
  if (form == PackedForm::bf16) return (k / 2 * kPanel + n) * 4 + k % 2 * 2;
  return (k * panel_outputs(form) + n) * plain_bytes(form);
}

using Halves = std::uint16_t __attribute__((vector_size(16)));
using Words = std::uint32_t __attribute__((vector_size(16)));

// Transposes rows of a matrix into a panel: numbers, or pairs of numbers (bf16), in squares of a vector's size. (One number at a time
// would take as long as reading the numbers from memory.) Returns how many columns are transposed; the caller does the remaining columns,
// fewer than a square has.
template <class Vector, std::size_t outputs>
std::size_t transpose(std::size_t columns, const std::byte* rows, std::size_t row_bytes, std::byte* packed) noexcept {
  constexpr std::size_t bytes = sizeof(Vector{}[0]), lanes = sizeof(Vector) / bytes;
  std::size_t k = 0;
  for (; k + lanes <= columns; k += lanes) {
    for (std::size_t n = 0; n < outputs; n += lanes) {
      std::array<Vector, lanes> a, b;
      for (std::size_t i = 0; i < lanes; ++i) a[i] = load<Vector>(rows + (n + i) * row_bytes + k * bytes);
      for (std::size_t done = 1; done < lanes; done *= 2, a = b) {  // interleaves the vectors of the two halves
        for (std::size_t i = 0; i < lanes / 2; ++i) {
          const Vector x = a[i], y = a[i + lanes / 2];
          if constexpr (lanes == 8) {
            b[2 * i] = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
          } else {
            b[2 * i] = __builtin_shufflevector(x, y, 0, 4, 1, 5);
            b[2 * i + 1] = __builtin_shufflevector(x, y, 2, 6, 3, 7);
          }
        }
      }
      for (std::size_t i = 0; i < lanes; ++i) store(packed + ((k + i) * outputs + n) * bytes, a[i]);
    }
  }
  return k;
}

template <PackedForm form>
void pack_plain(std::size_t inputs, const std::byte* rows, std::size_t count, std::byte* packed) noexcept {
  constexpr std::size_t bytes = plain_bytes(form), outputs = panel_outputs(form);
  using Vector = std::conditional_t<form == PackedForm::f16, Halves, Words>;  // a word is one f32 or two bf16
  constexpr std::size_t each = form == PackedForm::bf16 ? 2 : 1;
  std::size_t done = 0;
  if (count == outputs) done = transpose<Vector, outputs>(inputs / each, rows, inputs * bytes, packed) * each;
  std::memset(packed + done * outputs * bytes, 0, panel_bytes(form, inputs) - done * outputs * bytes);
  for (std::size_t n = 0; n < count; ++n) {
    const std::byte* row = rows + n * inputs * bytes;
    for (std::size_t k = done; k < inputs; ++k) std::memcpy(packed + plain_at(form, k, n), row + k * bytes, bytes);
  }
}

float plain_value(PackedForm form, const std::byte* at) noexcept {
  if (form == PackedForm::f32) return load<float>(at);
  const auto bits = load<std::uint16_t>(at);
  return form == PackedForm::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// ---- Blocks of 32 ----

template <FormLayout layout>
void pack_tile(const Block32& parts, std::size_t n, std::byte* tile) noexcept {
  const std::uint8_t* q = parts.q.data();
  if constexpr (layout.bits == 8) {
    for (std::size_t g = 0; g < 8; ++g) store(tile + g * 64 + n * 4, word(q + 4 * g));
  } else {
    for (std::size_t v = 0; v < 4; ++v) {
      const std::uint32_t low = word(q + 4 * v), high = word(q + 16 + 4 * v);
      store(tile + layout.low(0, v) + n * 4, (low & 0x0f0f0f0fu) | ((high & 0x0f0f0f0fu) << 4));
    }
  }
  if constexpr (layout.bits == 5) {
    add_fifth_bits<8>(q, n, tile + layout.more_at);
  }
  store(tile + layout.d_at + 2 * n, parts.d);
  if constexpr (layout.has_min) store(tile + layout.min_at + 2 * n, parts.m);
}

template <FormLayout layout>
Block32 unpack_tile32(const std::byte* tile, std::size_t n) noexcept {
  Block32 parts;
  parts.m = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const std::size_t g = i / 4, j = i % 4;
    if constexpr (layout.bits == 8) {
      parts.q[i] = static_cast<std::uint8_t>(tile[g * 64 + n * 4 + j]);
    } else {
      const auto both = static_cast<unsigned>(tile[layout.low(0, g % 4) + n * 4 + j]);
      parts.q[i] = static_cast<std::uint8_t>(i < 16 ? both & 15u : both >> 4);
      if constexpr (layout.bits == 5) {
        const auto byte = static_cast<unsigned>(tile[layout.more(0, g) + n / 2]);
        parts.q[i] = static_cast<std::uint8_t>(parts.q[i] | ((byte >> (n % 2 * 4 + j) & 1u) << 4));
      }
    }
  }
  parts.d = load<std::uint16_t>(tile + layout.d_at + 2 * n);
  if constexpr (layout.has_min) parts.m = load<std::uint16_t>(tile + layout.min_at + 2 * n);
  return parts;
}

template <FormLayout layout>
void decode(const Block32& parts, float* values) noexcept {
  const float d = f16_to_f32(parts.d);
  for (std::size_t i = 0; i < 32; ++i) values[i] = d * static_cast<float>(parts.q[i] - layout.offset);
  if constexpr (layout.has_min) {
    const float m = f16_to_f32(parts.m);
    for (std::size_t i = 0; i < 32; ++i) values[i] += m;
  }
}

// ---- Blocks of 256 ----

template <FormLayout layout>
void pack_tile(const Block256& parts, std::size_t n, std::byte* tile) noexcept {
  const std::uint8_t* q = parts.q.data();
  for (std::size_t p = 0; p < 4; ++p) {
    for (std::size_t v = 0; v < 8; ++v) {
      const std::uint32_t low = word(q + 64 * p + 4 * v), high = word(q + 64 * p + 32 + 4 * v);
      store(tile + layout.low(p, v) + n * 4, (low & 0x0f0f0f0fu) | ((high & 0x0f0f0f0fu) << 4));
    }
    if constexpr (layout.bits == 5) {
      add_fifth_bits<16>(q + 64 * p, n, tile + layout.more(p, 0));
    } else if constexpr (layout.bits == 6) {
      for (std::size_t v = 0; v < 8; v += 2) {
        const auto high = [&](std::size_t group) { return word(q + 64 * p + 4 * group) >> 4 & 0x03030303u; };
        store(tile + layout.more(p, v) + n * 4, high(v) | high(v + 8) << 2 | high(v + 1) << 4 | high(v + 9) << 6);
      }
    }
  }
  constexpr std::size_t scale_words = layout.bits == 6 ? 4 : 3;
  for (std::size_t w = 0; w < scale_words; ++w) {
    store(tile + layout.scales_at + w * 64 + n * 4, word(parts.scales.data() + 4 * w));
  }
  store(tile + layout.d_at + 2 * n, parts.d);
  if constexpr (layout.has_min) store(tile + layout.min_at + 2 * n, parts.dmin);
}

template <FormLayout layout>
Block256 unpack_tile256(const std::byte* tile, std::size_t n) noexcept {
  Block256 parts;
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t p = i / 64, half = i / 32 % 2, v = i / 4 % 8, j = i % 4;
    const auto both = static_cast<unsigned>(tile[layout.low(p, v) + n * 4 + j]);
    unsigned q = half == 0 ? both & 15u : both >> 4;
    if constexpr (layout.bits == 5) {
      q |= (static_cast<unsigned>(tile[layout.more(p, i / 4 % 16) + n / 2]) >> (n % 2 * 4 + j) & 1u) << 4;
    } else if constexpr (layout.bits == 6) {
      const auto high = static_cast<unsigned>(tile[layout.more(p, v) + n * 4 + j]);
      q |= (high >> (v % 2 * 4 + half * 2) & 3u) << 4;
    }
    parts.q[i] = static_cast<std::uint8_t>(q);
  }
  constexpr std::size_t scale_words = layout.bits == 6 ? 4 : 3;
  for (std::size_t w = 0; w < scale_words; ++w) {
    std::memcpy(parts.scales.data() + 4 * w, tile + layout.scales_at + w * 64 + n * 4, 4);
  }
  parts.d = load<std::uint16_t>(tile + layout.d_at + 2 * n);
  parts.dmin = 0;
  if constexpr (layout.has_min) parts.dmin = load<std::uint16_t>(tile + layout.min_at + 2 * n);
  return parts;
}

template <FormLayout layout>
void decode(const Block256& parts, float* values) noexcept {
  const float d = f16_to_f32(parts.d);
  if constexpr (layout.bits == 6) {
    for (std::size_t j = 0; j < 16; ++j) {
      const float scale = d * static_cast<float>(static_cast<std::int8_t>(parts.scales[j]));
      for (std::size_t i = 0; i < 16; ++i) values[16 * j + i] = scale * static_cast<float>(parts.q[16 * j + i] - 32);
    }
  } else {
    std::byte header[16];  // the beginning of the file's block
    store(header, parts.d);
    store(header + 2, parts.dmin);
    std::memcpy(header + 4, parts.scales.data(), 12);
    formats::detail::MinScales scales;
    scales.load(header);
    formats::detail::decode_lines(scales, parts.q, values);
  }
}

template <FormLayout layout>
auto unpack_tile(const std::byte* tile, std::size_t n) noexcept {
  if constexpr (layout.block_values == 32) {
    return unpack_tile32<layout>(tile, n);
  } else {
    return unpack_tile256<layout>(tile, n);
  }
}

template <class F>
void pack_blocks(std::size_t inputs, const std::byte* rows, std::size_t count, std::byte* packed) noexcept {
  constexpr FormLayout layout = form_layout(F::packed_form);
  const std::size_t tiles = inputs / F::block_values;
  if (count < kPanel) std::memset(packed, 0, tiles * layout.tile_bytes);
  for (std::size_t t = 0; t < tiles; ++t) {
    for (std::size_t n = 0; n < count; ++n) {
      std::conditional_t<F::block_values == 32, Block32, Block256> parts;
      F::unpack(rows + (n * tiles + t) * F::block_bytes, parts);
      pack_tile<layout>(parts, n, packed + t * layout.tile_bytes);
    }
  }
}

// ---- Kept blocks ----

template <class F>
void keep_blocks(std::size_t inputs, const std::byte* rows, std::size_t count, std::byte* packed) noexcept {
  constexpr FormLayout layout = form_layout(F::packed_form);
  static_assert(layout.block_values == F::block_values && layout.tile_bytes == kPanel * F::block_bytes);
  const std::size_t tiles = inputs / F::block_values;
  if (count < kPanel) std::memset(packed, 0, tiles * layout.tile_bytes);
  for (std::size_t t = 0; t < tiles; ++t) {
    for (std::size_t n = 0; n < count; ++n) {
      keep_block(F::packed_form, rows + (n * tiles + t) * F::block_bytes, n, packed + t * layout.tile_bytes);
    }
  }
}

// Calls fn with `form` as a template constant. Does nothing if `form` is not quantised, or keeps the file's blocks.
template <class Fn>
void visit_quantised(PackedForm form, Fn&& fn) noexcept {
  const auto one = [&]<PackedForm each>(std::integral_constant<PackedForm, each>) {
    if constexpr (is_quantised(each) && !form_layout(each).kept) {
      if (form == each) fn(std::integral_constant<PackedForm, each>{});
    }
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (one(std::integral_constant<PackedForm, static_cast<PackedForm>(i)>{}), ...);
  }(std::make_index_sequence<formats::kPackedForms>{});
}

}  // namespace

std::uint64_t panels_of(const backend::MatrixShape& shape) noexcept {
  const std::size_t outputs = panel_outputs(formats::packed_form_of(shape.dtype));
  return (shape.outputs + outputs - 1) / outputs;
}

std::uint64_t row_bytes(const backend::MatrixShape& shape) noexcept {
  const auto block = formats::block_of(shape.dtype);
  return block ? shape.inputs / block->values * block->bytes : 0;
}

std::uint64_t packed_bytes(const backend::MatrixShape& shape) noexcept {
  return shape.count * panels_of(shape) * panel_bytes(formats::packed_form_of(shape.dtype), shape.inputs);
}

void pack_panel(const backend::MatrixShape& shape, const std::byte* rows, std::size_t count, std::byte* packed) noexcept {
  formats::visit(shape.dtype, [&]<class F>(std::type_identity<F>) {
    if constexpr (!is_quantised(F::packed_form)) {
      pack_plain<F::packed_form>(shape.inputs, rows, count, packed);
    } else if constexpr (form_layout(F::packed_form).kept) {
      keep_blocks<F>(shape.inputs, rows, count, packed);
    } else {
      pack_blocks<F>(shape.inputs, rows, count, packed);
    }
  });
}

void unpack_row(const backend::Matrix& matrix, std::uint64_t row, float* out) noexcept {
  const PackedForm form = matrix.form;
  const std::size_t inputs = matrix.shape.inputs, outputs = panel_outputs(form), n = row % outputs;
  const std::byte* panel = matrix.data + row / outputs * panel_bytes(form, inputs);
  if (!is_quantised(form)) {
    for (std::size_t k = 0; k < inputs; ++k) out[k] = plain_value(form, panel + plain_at(form, k, n));
  } else if (formats::keeps_blocks(form)) {
    formats::visit_kept(form, [&]<class F>(std::type_identity<F>) {
      for (std::size_t k = 0; k < inputs; k += F::block_values, panel += kPanel * F::block_bytes) {
        std::byte block[F::block_bytes];
        kept_block(F::packed_form, panel, n, block);
        F::decode(block, out + k);
      }
    });
  } else {
    visit_quantised(form, [&]<PackedForm each>(std::integral_constant<PackedForm, each>) {
      constexpr FormLayout layout = form_layout(each);
      for (std::size_t k = 0; k < inputs; k += layout.block_values, panel += layout.tile_bytes) {
        decode<layout>(unpack_tile<layout>(panel, n), out + k);
      }
    });
  }
}

void decode_tile(PackedForm form, const std::byte* tile, float* out) noexcept {
  if (!is_quantised(form)) {
    const FormLayout layout = form_layout(form);
    for (std::size_t k = 0; k < layout.block_values; ++k) {
      for (std::size_t n = 0; n < layout.outputs; ++n) *out++ = plain_value(form, tile + plain_at(form, k, n));
    }
  } else if (formats::keeps_blocks(form)) {
    decode_kept_tile(form, tile, out);
  } else {
    visit_quantised(form, [&]<PackedForm each>(std::integral_constant<PackedForm, each>) {
      constexpr FormLayout layout = form_layout(each);
      for (std::size_t n = 0; n < kPanel; ++n) {
        std::array<float, layout.block_values> values;
        decode<layout>(unpack_tile<layout>(tile, n), values.data());
        for (std::size_t k = 0; k < layout.block_values; ++k) out[k * kPanel + n] = values[k];
      }
    });
  }
}

}  // namespace tessera::cpu
