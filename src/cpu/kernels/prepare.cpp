// Kernels that prepare rows: they convert a row of activations to the form that a product reads (8-bit integers with scales, bf16;
// cpu/products/prepared_rows.hpp).
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace prepare {
namespace {

constexpr std::int32_t kInfinity = 0x7f800000;

// Fills the last cache line of a row with zeros, from byte `at` of the row on.
TESSERA_INLINE void fill_line(std::byte* row, std::size_t at, std::size_t group) {
  for (std::byte* to = row + in_group(at, group); at % 64 != 0; ++at, ++to) *to = std::byte{};
}

TESSERA_INLINE I32x16 magnitude(F32x16 x) { return as<I32x16>(x) & broadcast(0x7fffffff); }

void prepare_f32(const float* x, std::size_t n, std::byte* out, std::size_t) noexcept {
  __builtin_memcpy(out, x, n * sizeof(float));
}

using native::I4;
using F4 = float __attribute__((vector_size(16)));

TESSERA_INLINE I4 sums_of(const I32x16 (&v)[4]) {
  return reduce4(v, [](native::I a, native::I b) TESSERA_LAMBDA { return a + b; });
}
TESSERA_INLINE I4 tops_of(const I32x16 (&v)[4]) {
  return reduce4(v, [](native::I a, native::I b) TESSERA_LAMBDA { return native::max(a, b); });
}

// The factors by which four blocks of a row are rounded to 8-bit integers, one block in each lane. `inverse` turns values into integers,
// `scale` turns integers back into values. `counts` is a mask: all ones, or 0 for a block whose integers all become zeros.
struct Grids {
  I4 counts;
  F4 inverse, scale;
};

TESSERA_INLINE Grids grids_of(I4 top_bits) {
  constexpr float kNan = __builtin_nanf("");
  const F4 top = (F4)top_bits, zero = {};
  const I4 finite = top_bits < kInfinity, counts = finite & (top >= kLeastTop);
  return {counts, 127.0f / top, counts ? top / 127.0f : finite ? zero : zero + kNan};
}

// Returns 16 values of block i (0 to 3) as integers. NaN and infinities are masked out before the conversion.
TESSERA_INLINE I32x16 quantised(const float* x, const Grids& grids, std::size_t i) {
  const auto zero_or_self = as<I32x16>(load<F32x16>(x) * broadcast(grids.inverse[i])) & broadcast(grids.counts[i]);
  return round(as<F32x16>(zero_or_self));
}

// Prepares kBlocks blocks of 32, at most four, from block b on.
template <std::size_t kBlocks>
TESSERA_INLINE void prepare_blocks32(const float* x, std::size_t b, const RowLayout& row, std::byte* out,
                                     std::size_t group) {
  const auto block = [](std::size_t i) TESSERA_LAMBDA { return i < kBlocks ? i : 0; };
  I32x16 v[4];
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 4; ++i) {
    const float* from = x + 32 * block(i);
    v[i] = max(magnitude(load<F32x16>(from)), magnitude(load<F32x16>(from + 16)));
  }
  const Grids grids = grids_of(tops_of(v));
  TESSERA_UNROLL
  for (std::size_t i = 0; i < 4; ++i) {
    if (i >= kBlocks) {
      v[i] = broadcast(0);
      continue;
    }
    const I32x16 first = quantised(x + 32 * i, grids, i), second = quantised(x + 32 * i + 16, grids, i);
    std::byte* q = out + in_group(32 * (b + i), group);
    store_i8(q, first);
    store_i8(q + 16, second);
    v[i] = first + second;
  }
  const I4 sums = sums_of(v);
  __builtin_memcpy(out + in_group(row.scales + 4 * b, group), &grids.scale, 4 * kBlocks);
  __builtin_memcpy(out + in_group(row.sums + 4 * b, group), &sums, 4 * kBlocks);
}

void prepare_int8x32(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  const RowLayout row = row_layout(InputForm::int8x32, n);
  std::size_t b = 0;
  for (; b + 4 <= n / 32; b += 4) prepare_blocks32<4>(x + 32 * b, b, row, out, group);
  for (; b < n / 32; ++b) prepare_blocks32<1>(x + 32 * b, b, row, out, group);
  fill_line(out, n, group);
}

void prepare_int8x256(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  const RowLayout row = row_layout(InputForm::int8x256, n);
  for (std::size_t b = 0; b < n / 256; ++b, x += 256) {
    I32x16 top[4];
    TESSERA_UNROLL
    for (std::size_t i = 0; i < 4; ++i) top[i] = magnitude(load<F32x16>(x + 16 * i));
    for (std::size_t at = 64; at < 256; at += 64) {
      TESSERA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) top[i] = max(top[i], magnitude(load<F32x16>(x + at + 16 * i)));
    }
    const I32x16 all = max(max(top[0], top[1]), max(top[2], top[3]));
    const Grids grids = grids_of(tops_of({all, all, all, all}));
    __builtin_memcpy(out + in_group(row.scales + 4 * b, group), &grids.scale, sizeof(float));
    std::int32_t sums[16];
    for (std::size_t line = 0; line < 4; ++line) {
      std::byte* q = out + in_group(256 * b + 64 * line, group);
      I32x16 v[4];
      TESSERA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) {
        v[i] = quantised(x + 64 * line + 16 * i, grids, 0);
        store_i8(q + 16 * i, v[i]);
      }
      const I4 four = sums_of(v);
      __builtin_memcpy(sums + 4 * line, &four, sizeof four);
    }
    auto* sum16 = reinterpret_cast<std::int16_t*>(out + in_group(row.sums + 32 * b, group));
    auto* parts = reinterpret_cast<std::int8_t*>(out + in_group(row.parts + 16 * b, group));
    for (std::size_t i = 0; i < 16; ++i) sum16[i] = static_cast<std::int16_t>(sums[i]);
    for (std::size_t j = 0; j < 8; ++j) {
      const std::int32_t sum = sums[2 * j] + sums[2 * j + 1], high = (sum + 64) >> 7;
      parts[j] = static_cast<std::int8_t>(sum - 128 * high);
      parts[8 + j] = static_cast<std::int8_t>(high);
    }
  }
}

// Calls fn(at, 16 values, the next 16 values) for each 32 values of a row, which are one cache line once they are bf16. `at`: where this
// line begins in the row of bf16, in bytes. Values beyond the end of the row are zeros.
template <class Fn>
TESSERA_INLINE void by_lines(const float* x, std::size_t n, Fn fn) {
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) fn(2 * i, load<F32x16>(x + i), load<F32x16>(x + i + 16));
  if (i == n) return;
  const std::size_t rest = n - i;
  fn(2 * i, load_some(x + i, rest), rest > 16 ? load_some(x + i + 16, rest - 16) : broadcast(0.0f));
}

void prepare_bf16(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  by_lines(x, n, [&](std::size_t at, F32x16 a, F32x16 b) TESSERA_LAMBDA {
    store_high_parts(out + in_group(at, group), a, b);
  });
}

void prepare_bf16x2(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  const std::size_t low = row_layout(InputForm::bf16x2, n).low;
  by_lines(x, n, [&](std::size_t at, F32x16 a, F32x16 b) TESSERA_LAMBDA {
    store_both_parts(out + in_group(at, group), out + in_group(low + at, group), a, b);
  });
}

}  // namespace
}  // namespace prepare

void add_preparation(Kernels& kernels) noexcept {
  using namespace prepare;
  const auto set = [&kernels](InputForm form, PrepareFn run) { kernels.prepare[static_cast<std::size_t>(form)] = run; };
  set(InputForm::f32, prepare_f32);
  set(InputForm::int8x32, prepare_int8x32);
  set(InputForm::int8x256, prepare_int8x256);
  set(InputForm::bf16, prepare_bf16);
  set(InputForm::bf16x2, prepare_bf16x2);
}

}  // namespace tessera::cpu::TESSERA_ISA
