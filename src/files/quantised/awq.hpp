// AWQ checkpoints in the GEMM layout (AutoAWQ): integers of 4 bits, packed along the outputs.
//
//   qweight  I32 [inputs, outputs / 8]: a word has the integers of one input and 8 consecutive outputs. Its nibbles, lowest
//            first, belong to the outputs 0, 2, 4, 6, 1, 3, 5, 7 of the 8
//   qzeros   I32 [groups, outputs / 8]: zero points, packed in the same way
//   scales   F16 [groups, outputs]
//
// weight = scale * (integer - zero).
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

struct AwqLayer {
  LinearShape shape;
  ScaleType scale_type = ScaleType::f16;
  std::span<const std::byte> qweight, qzeros, scales;
};

[[nodiscard]] DType awq_form(const AwqLayer& layer) noexcept;

// Checks that all tensors have the bytes that the shape needs. decode_awq() needs a layer that was checked.
[[nodiscard]] Status check_awq(const AwqLayer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`. The rows have the type that awq_form() returns. If it is a block
// format: the weights are exact. If it is a type of single numbers: each weight is rounded once. Threads: several threads may decode
// different rows at once.
[[nodiscard]] Status decode_awq(const AwqLayer& layer, std::uint64_t first, std::uint64_t rows,
                                std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
