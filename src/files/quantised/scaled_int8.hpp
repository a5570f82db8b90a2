// Weights of 8 bits as bitsandbytes writes them (LLM.int8()).
//
//   weight  I8 [outputs, inputs]
//   SCB     F32 [outputs]: the largest magnitude of an output's weights
//
// weight = integer * SCB / 127, computed as bitsandbytes does: (integer * SCB) times the float nearest to 1/127. The scales are not F16
// numbers, so none of our block formats represents these weights exactly. Rows are decoded to F32, and each of the two multiplications is
// rounded once.
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

struct ScaledInt8Layer {
  std::uint64_t outputs, inputs;
  std::span<const std::byte> weight, scb;
};

// Checks that the tensors have the bytes that the shape needs. decode_scaled_int8() needs a layer that was checked.
[[nodiscard]] Status check_scaled_int8(const ScaledInt8Layer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`, as F32. Threads: several threads may decode
// different rows at once.
[[nodiscard]] Status decode_scaled_int8(const ScaledInt8Layer& layer, std::uint64_t first, std::uint64_t rows,
                                        std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
