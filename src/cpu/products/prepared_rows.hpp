// The layout of prepared rows: a step's activations in the form that products read. Each row is converted once to the form of its
// product's family, and all products of the row read that form. The table below shows the arrays of a row, in order (q: the rounded
// integers). Each array is padded to 64 bytes; q is padded with zeros. A row has an odd number of cache lines, so that the same element
// of consecutive rows is in different sets of the CPU's caches.
//
// Kernels that use tile registers (AMX) load the same cache line of many rows at a time. For these kernels the rows of a tile are a
// group, whose lines alternate: line 0 of each row, line 1 of each row, and so on. The last group has room for all its rows, even if the
// step has fewer.
//
//   f32       the activations themselves
//   int8x32   q [inputs] i8; scale [inputs / 32] f32; sum [inputs / 32] i32, the sum of each block's q
//   int8x256  q [inputs] i8; scale [inputs / 256] f32; sum16 [inputs / 16] i16, the sum of each 16 q;
//             parts [inputs / 256][low[8], high[8]] i8: the sum of each 32 q as 128 * high + low, low from -64 to 63
//   bf16      [inputs padded to 32] bf16
//   bf16x2    high [inputs padded to 32] bf16, then low in the same shape: x rounded to bf16, and the rest x - high, rounded
//
// Rounding, the same on every instruction set (docs/reference/numerics.md):
//   int8      top = the largest |x| of the block. If top is not finite: scale NaN, q 0. If top < 2^-100: scale 0, q 0. Else
//             scale = top / 127, q = x * (127 / top) rounded to nearest even.
//   bf16      to nearest even; denormals are 0, NaN stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

enum class InputForm : std::uint8_t { f32, int8x32, int8x256, bf16, bf16x2, count };
inline constexpr std::size_t kInputForms = static_cast<std::size_t>(InputForm::count);

inline constexpr float kLeastTop = 0x1p-100f;  // a block whose values are all smaller counts as zeros

// Kernels of all instruction sets call the functions below. The functions are always inlined, so that no object file has a copy that is
// compiled for one instruction set and called on a machine without it (cpu/kernels.hpp).
[[nodiscard, gnu::always_inline]] constexpr std::size_t pad64(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

// Offsets of a row's parts, in bytes.
struct RowLayout {
  std::size_t scales = 0, sums = 0, parts = 0;  // int8x32 and int8x256; parts: only int8x256
  std::size_t low = 0;                          // bf16x2
  std::size_t bytes = 0;                        // bytes of the row
};

[[nodiscard, gnu::always_inline]] constexpr RowLayout row_layout(InputForm form, std::size_t inputs) noexcept {
  RowLayout row;
  switch (form) {
    case InputForm::f32: row.bytes = inputs * sizeof(float); break;
    case InputForm::int8x32:
      row.scales = pad64(inputs);
      row.sums = row.scales + pad64(inputs / 32 * sizeof(float));
      row.bytes = row.sums + pad64(inputs / 32 * sizeof(std::int32_t));
      break;
    case InputForm::int8x256:
      row.scales = pad64(inputs);
      row.sums = row.scales + pad64(inputs / 256 * sizeof(float));
      row.parts = row.sums + pad64(inputs / 16 * sizeof(std::int16_t));
      row.bytes = row.parts + pad64(inputs / 256 * 16);
      break;
    case InputForm::bf16: row.bytes = pad64(2 * inputs); break;
    case InputForm::bf16x2:
      row.low = pad64(2 * inputs);
      row.bytes = 2 * row.low;
      break;
    case InputForm::count: break;
  }
  if (form != InputForm::f32 && row.bytes / 64 % 2 == 0) row.bytes += 64;
  return row;
}

// Return places in rows that are stored in groups of `group` rows whose lines alternate. group_at() returns the distance in bytes from the
// first row's first byte to the first byte of row `row`. in_group() returns the distance from a row's first byte to its byte `at`.
[[nodiscard, gnu::always_inline]] constexpr std::size_t in_group(std::size_t at, std::size_t group) noexcept {
  return at / 64 * 64 * group + at % 64;
}
[[nodiscard, gnu::always_inline]] constexpr std::size_t group_at(std::size_t row, std::size_t group,
                                                                 std::size_t row_bytes) noexcept {
  return row / group * group * row_bytes + row % group * 64;
}

}  // namespace tessera::cpu
