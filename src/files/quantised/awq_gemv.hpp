// AWQ checkpoints in the GEMV layout (AutoAWQ, "version": "gemv"): integers of 4 bits, packed along the inputs in their order.
//
//   qweight  I32 [outputs, inputs / 8]: the lowest nibble first
//   qzeros   I32 [outputs, words]: zero points, packed in the same way. `words`: groups / 8, rounded up to a multiple of 1 (groups of 128
//            inputs and more), 2 (groups of 64) or 4 (groups of 32)
//   scales   F16 [outputs, words * 8]
//
// weight = scale * (integer - zero). Rows have the same form as in the GEMM layout (awq_form()).
#pragma once

#include "files/quantised/awq.hpp"

namespace tessera::detail {

// Checks that all tensors have the bytes that the shape needs. decode_awq_gemv() needs a layer that was checked.
[[nodiscard]] Status check_awq_gemv(const AwqLayer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`. The rows have the type that awq_form() returns. If it is a block
// format: the weights are exact. If it is a type of single numbers: each weight is rounded once. Threads: several threads may decode
// different rows at once.
[[nodiscard]] Status decode_awq_gemv(const AwqLayer& layer, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
