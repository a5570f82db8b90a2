// Activations into the forms that products read (cpu/prepared_rows.hpp).
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

constexpr std::int32_t kInfinity = 0x7f800000;

// The rest of a line, from byte `at` of the row on.
TESSERA_INLINE void fill_line(std::byte* row, std::size_t at, std::size_t group) {
  for (std::byte* to = row + in_group(at, group); at % 64 != 0; ++at, ++to) *to = std::byte{};
}

TESSERA_INLINE I32x16 magnitude(F32x16 x) { return as<I32x16>(x) & broadcast(0x7fffffff); }

void prepare_f32(const float* x, std::size_t n, std::byte* out, std::size_t) noexcept {
  __builtin_memcpy(out, x, n * sizeof(float));
}

// What a block is multiplied by to become integers, and divided by to become itself again.
struct Grid {
  float inverse, scale;
};

TESSERA_INLINE Grid grid_of(std::int32_t top_bits) {
  if (top_bits >= kInfinity) return {0.0f, __builtin_nanf("")};
  const float top = __builtin_bit_cast(float, top_bits);
  if (top < kLeastTop) return {0.0f, 0.0f};
  return {127.0f / top, top / 127.0f};
}

// 16 values to integers: their sum. NaN times 0 is NaN, which no conversion may see.
TESSERA_INLINE std::int32_t quantise(const float* x, Grid grid, std::byte* q) {
  const I32x16 values = grid.inverse == 0 ? broadcast(0) : round(load<F32x16>(x) * broadcast(grid.inverse));
  store_i8(q, values);
  return reduce_add(values);
}

void prepare_int8x32(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  const RowLayout row = row_layout(InputForm::int8x32, n);
  for (std::size_t b = 0; b < n / 32; ++b, x += 32) {
    const Grid grid = grid_of(reduce_max(max(magnitude(load<F32x16>(x)), magnitude(load<F32x16>(x + 16)))));
    std::byte* q = out + in_group(32 * b, group);
    const std::int32_t sum = quantise(x, grid, q) + quantise(x + 16, grid, q + 16);
    *reinterpret_cast<float*>(out + in_group(row.scales + 4 * b, group)) = grid.scale;
    *reinterpret_cast<std::int32_t*>(out + in_group(row.sums + 4 * b, group)) = sum;
  }
  fill_line(out, n, group);
}

void prepare_int8x256(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  const RowLayout row = row_layout(InputForm::int8x256, n);
  for (std::size_t b = 0; b < n / 256; ++b, x += 256) {
    auto* sums = reinterpret_cast<std::int16_t*>(out + in_group(row.sums + 32 * b, group));
    auto* parts = reinterpret_cast<std::int8_t*>(out + in_group(row.parts + 16 * b, group));
    I32x16 top = magnitude(load<F32x16>(x));
    for (std::size_t i = 16; i < 256; i += 16) top = max(top, magnitude(load<F32x16>(x + i)));
    const Grid grid = grid_of(reduce_max(top));
    *reinterpret_cast<float*>(out + in_group(row.scales + 4 * b, group)) = grid.scale;
    for (std::size_t j = 0; j < 8; ++j) {
      std::byte* q = out + in_group(256 * b + 32 * j, group);
      const std::int32_t first = quantise(x + 32 * j, grid, q);
      const std::int32_t second = quantise(x + 32 * j + 16, grid, q + 16);
      sums[2 * j] = static_cast<std::int16_t>(first);
      sums[2 * j + 1] = static_cast<std::int16_t>(second);
      const std::int32_t high = (first + second + 64) >> 7;
      parts[j] = static_cast<std::int8_t>(first + second - 128 * high);
      parts[8 + j] = static_cast<std::int8_t>(high);
    }
  }
}

TESSERA_INLINE void store_bf16(std::byte* to, U32x16 high_halves) { store_u16(to, as<I32x16>(high_halves >> 16)); }

void prepare_bf16(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  for (std::size_t i = 0; i < n; i += 16) store_bf16(out + in_group(2 * i, group), to_bf16(load_some(x + i, n - i)));
  fill_line(out, (n + 15) / 16 * 32, group);
}

void prepare_bf16x2(const float* x, std::size_t n, std::byte* out, std::size_t group) noexcept {
  const std::size_t low = row_layout(InputForm::bf16x2, n).low, done = (n + 15) / 16 * 32;
  for (std::size_t i = 0; i < n; i += 16) {
    const F32x16 value = load_some(x + i, n - i);
    const U32x16 high = to_bf16(value);
    store_bf16(out + in_group(2 * i, group), high);
    store_bf16(out + in_group(low + 2 * i, group), to_bf16(value - as<F32x16>(high)));
  }
  fill_line(out, done, group);
  fill_line(out, low + done, group);
}

}  // namespace

void add_preparation(Kernels& kernels) noexcept {
  const auto set = [&kernels](InputForm form, PrepareFn run) { kernels.prepare[static_cast<std::size_t>(form)] = run; };
  set(InputForm::f32, prepare_f32);
  set(InputForm::int8x32, prepare_int8x32);
  set(InputForm::int8x256, prepare_int8x256);
  set(InputForm::bf16, prepare_bf16);
  set(InputForm::bf16x2, prepare_bf16x2);
}

}  // namespace tessera::cpu::TESSERA_ISA
