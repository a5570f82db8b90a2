// Integers as compressed-tensors writes them (llm-compressor): "pack-quantized" and "int-quantized", of 4 or 8 bits.
//
//   weight_packed      I32 [outputs, inputs * bits / 32 rounded up]: each row is a stream of (integer + 2^(bits - 1)).
//                      int-quantized: weight I8 [outputs, inputs], the integers themselves
//   weight_scale       F16, BF16 or F32 [outputs, groups]
//   weight_zero_point  if not symmetric. Packed: I32 [outputs * bits / 32 rounded up, groups], each column a stream of
//                      (zero + 2^(bits - 1)) along the outputs. int-quantized: I8 [outputs, groups]
//   weight_g_idx       I32 [inputs]: the group of each input, in older files
//
// weight = scale * (integer - zero).
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

struct PackedIntegersLayer {
  LinearShape shape;
  unsigned bits = 4;
  bool packed = true;  // false: int-quantized
  ScaleType scale_type = ScaleType::bf16;
  std::span<const std::byte> weight, scales;
  std::span<const std::byte> zeros = {};  // empty: symmetric
  std::span<const std::byte> g_idx = {};  // empty: input / group
};

// Returns the type of the decoded rows. It is a block format only if the scales are F16 or BF16 numbers. (A block's scale is an F16 number.
// Nearly all BF16 scales can be written as F16; decode_packed_integers() rounds the others.) With F32 scales, rows are single numbers.
// `reordered`: the result of check_packed_integers().
[[nodiscard]] DType packed_integers_form(const PackedIntegersLayer& layer, bool reordered) noexcept;

// Checks that all tensors have the bytes that the shape needs, and that g_idx names groups that exist. Returns whether the layer has
// another order of groups than the plain one (input i in the group i / inputs of a group). Errors: unsupported, another number of bits;
// corrupt_file. decode_packed_integers() needs a layer that was checked.
[[nodiscard]] Result<bool> check_packed_integers(const PackedIntegersLayer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`. The rows have the type that packed_integers_form() returns. If it is a
// type of single numbers: each weight is rounded once. If it is a block format: the weights are exact. Exception: a BF16 scale below 2^-17
// or above 65504 that is not an F16 number is rounded to an F16 number. Adds the number of blocks with a rounded scale to `rounded`.
// Threads: several threads may decode different rows at once.
[[nodiscard]] Status decode_packed_integers(const PackedIntegersLayer& layer, bool reordered, std::uint64_t first,
                                            std::uint64_t rows, std::span<std::byte> out,
                                            std::uint64_t& rounded) noexcept;

}  // namespace tessera::detail
