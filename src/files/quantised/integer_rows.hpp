// Code that the readers of integer formats (GPTQ, AWQ, compressed-tensors, ...) share. After unpacking, a weight of these formats is an
// integer times a scale. In each row, a group of consecutive inputs shares a scale. If one of our block formats represents the weights
// exactly, they are written into that format:
//
//   integers -8 to 7       Q4_0
//   integers -16 to 15     Q5_0: 4 bits with a zero point
//   integers -128 to 127   Q8_0
//   other integers         single numbers of the scales' type
//
// A block has 32 values with one F16 scale. So if groups do not consist of whole blocks, or if scales are not F16 numbers, the weights
// become single numbers too. A single number is the product of integer and scale, rounded once to the scales' type (F32 for F32 scales).
// The formats' own packages compute the same numbers, because they multiply in that type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "core/float16.hpp"
#include "formats/block.hpp"

namespace tessera::detail {

inline constexpr std::size_t kIntegerBlock = 32;
using IntegerBlock = std::array<std::int16_t, kIntegerBlock>;

// The shape of a linear layer's weights. The last group may be shorter than the others.
struct LinearShape {
  std::uint64_t outputs, inputs;
  std::uint64_t group;  // consecutive inputs that share a scale; `inputs` if an output has one scale

  [[nodiscard]] std::uint64_t groups() const noexcept { return group == 0 ? 0 : (inputs - 1) / group + 1; }
};

// The types in which formats keep scales.
enum class ScaleType : std::uint8_t { f16, bf16, f32 };

[[nodiscard]] constexpr std::size_t scale_bytes(ScaleType type) noexcept { return type == ScaleType::f32 ? 4 : 2; }

[[nodiscard]] inline float load_scale(ScaleType type, const std::byte* scales, std::uint64_t index) noexcept {
  if (type == ScaleType::f32) {
    float value = 0;
    std::memcpy(&value, scales + index * sizeof value, sizeof value);
    return value;
  }
  const std::uint16_t bits = formats::detail::load_u16(scales + index * 2);
  return type == ScaleType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// Returns the form of single numbers for scales of `type`.
[[nodiscard]] constexpr DType number_form(ScaleType type) noexcept {
  return type == ScaleType::f16 ? DType::f16 : type == ScaleType::bf16 ? DType::bf16 : DType::f32;
}
[[nodiscard]] constexpr bool is_number_form(DType form) noexcept { return form == DType::f32 || form == DType::f16 || form == DType::bf16; }

// Writes a weight as a number of the form f32, f16 or bf16, and advances `out` by the number's bytes.
inline void write_number(DType form, float value, std::byte*& out) noexcept {
  if (form == DType::f32) {
    std::memcpy(out, &value, sizeof value);
    out += sizeof value;
    return;
  }
  formats::detail::store_u16(out, form == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value));
  out += 2;
}

// Returns the smallest block format that represents all products of an integer of [lowest, highest] and an F16 number exactly. If there is
// none, returns the type of the scales, for single numbers. `whole`: groups consist of whole blocks, and scales are F16 numbers. `type`:
// the scales' type.
[[nodiscard]] constexpr DType integer_form(int lowest, int highest, bool whole, ScaleType type) noexcept {
  if (!whole || lowest < -128 || highest > 127) return number_form(type);
  if (lowest < -16 || highest > 15) return DType::q8_0;
  return lowest < -8 || highest > 7 ? DType::q5_0 : DType::q4_0;
}

// Returns whether groups and rows are whole blocks.
[[nodiscard]] constexpr bool has_whole_blocks(const LinearShape& shape) noexcept {
  return shape.group % kIntegerBlock == 0 && shape.inputs % kIntegerBlock == 0;
}

// Returns the bytes of a row in a form. Precondition: the row is whole blocks of the form.
[[nodiscard]] inline std::uint64_t form_row_bytes(DType form, std::uint64_t inputs) noexcept {
  const auto block = formats::block_of(form);
  return block ? inputs / block->values * block->bytes : 0;
}

// Writes 32 integers times a scale to `out`. If `form` is a block format: as one block, whose scale is rounded to F16. Otherwise: as 32
// numbers. Returns false if an integer is beyond the range of the form; then the content of `out` is undefined.
[[nodiscard]] inline bool write_integers(DType form, const IntegerBlock& values, float scale, std::byte* out) noexcept {
  formats::detail::Quants<kIntegerBlock> q{};
  // Sets q to the values plus `by`. Returns whether all results are from 0 to count - 1. Precondition: `count` is a power of two.
  const auto shift = [&](int by, unsigned count) {
    unsigned beyond = 0;
    for (std::size_t i = 0; i < kIntegerBlock; ++i) {
      const auto shifted = static_cast<unsigned>(values[i] + by);
      beyond |= shifted & ~(count - 1);
      q[i] = static_cast<std::uint8_t>(shifted);
    }
    return beyond == 0;
  };
  switch (form) {
    case DType::q4_0:
      if (!shift(8, 16)) return false;
      formats::detail::store_f16(out, scale);
      formats::detail::pack_nibbles(q, out + 2);
      return true;
    case DType::q5_0:
      if (!shift(16, 32)) return false;
      formats::detail::store_f16(out, scale);
      formats::detail::pack_fifth_bits(q, out + 2);
      formats::detail::pack_nibbles(q, out + 6);
      return true;
    case DType::q8_0:
      if (!shift(128, 256)) return false;
      formats::detail::store_f16(out, scale);
      for (std::size_t i = 0; i < kIntegerBlock; ++i) out[2 + i] = static_cast<std::byte>(q[i] ^ 0x80u);
      return true;
    default:
      for (const std::int16_t value : values) write_number(form, static_cast<float>(value) * scale, out);
      return true;
  }
}

// Reads value `index` of a stream of integers of `bits` bits (2, 3, 4 or 8), the first in the lowest bits of the first
// byte. Precondition: the stream has the value.
[[nodiscard]] inline unsigned stream_value(const std::byte* stream, std::uint64_t index, unsigned bits) noexcept {
  const std::uint64_t at = index * bits;
  const auto in_byte = static_cast<unsigned>(at % 8);
  unsigned word = static_cast<unsigned>(stream[at / 8]);
  if (in_byte + bits > 8) word |= static_cast<unsigned>(stream[at / 8 + 1]) << 8;
  return word >> in_byte & ((1u << bits) - 1);
}

// Reads the first 32 integers of a stream, and subtracts `minus` from each.
inline void unpack_stream(const std::byte* stream, unsigned bits, int minus, IntegerBlock& values) noexcept {
  if (bits == 4) {
    for (std::size_t i = 0; i < kIntegerBlock / 2; ++i) {
      const auto byte = static_cast<int>(stream[i]);
      values[2 * i] = static_cast<std::int16_t>((byte & 15) - minus);
      values[2 * i + 1] = static_cast<std::int16_t>((byte >> 4) - minus);
    }
  } else if (bits == 8) {
    for (std::size_t i = 0; i < kIntegerBlock; ++i)
      values[i] = static_cast<std::int16_t>(static_cast<int>(stream[i]) - minus);
  } else {
    for (std::size_t i = 0; i < kIntegerBlock; ++i) {
      values[i] = static_cast<std::int16_t>(static_cast<int>(stream_value(stream, i, bits)) - minus);
    }
  }
}

// Checks that a tensor has `wanted` bytes; nullopt: the size overflows, which is an error. `what` names the tensor in the error.
[[nodiscard]] Status check_bytes(const char* what, std::span<const std::byte> bytes,
                                 std::optional<std::uint64_t> wanted);
// Checks that the rows [first, first + rows) exist, and that `out` has the size of these rows in `form`.
[[nodiscard]] Status check_rows(const LinearShape& shape, std::uint64_t first, std::uint64_t rows, DType form,
                                std::span<const std::byte> out);
// Returns the product, for check_bytes(); nullopt if it overflows.
[[nodiscard]] std::optional<std::uint64_t> size_product(std::initializer_list<std::uint64_t> factors) noexcept;

}  // namespace tessera::detail
