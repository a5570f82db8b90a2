// Weights of 8-bit floats (FP8), with one scale for the whole matrix, for each output, or for each block: DeepSeek, Qwen's FP8 models,
// compressed-tensors "float-quantized" and ModelOpt.
//
//   weight  F8_E4M3 or F8_E5M2 [outputs, inputs]
//   scale   [outputs / block_outputs rounded up, inputs / block_inputs rounded up]
//
// weight = float * scale. None of our block formats can represent these weights exactly, so rows are decoded to single numbers. If rows are
// F32: each number is the product, rounded once. If rows are BF16: the F32 number is rounded again, with a relative error of at most 2^-9.
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

enum class Fp8Type : std::uint8_t { e4m3, e5m2 };
enum class Fp8ScaleType : std::uint8_t { f32, bf16, f16, e8m0 };  // e8m0: 2^(byte - 127)

struct Fp8Layer {
  std::uint64_t outputs, inputs;
  std::uint64_t block_outputs,
      block_inputs;  // sizes of a scale's block. One scale for the matrix: outputs, inputs; one for each output: 1, inputs
  Fp8Type type = Fp8Type::e4m3;
  Fp8ScaleType scale_type = Fp8ScaleType::f32;
  std::span<const std::byte> weight, scales;
};

// Checks that the tensors have the bytes that the shape needs. decode_fp8() needs a layer that was checked.
[[nodiscard]] Status check_fp8(const Fp8Layer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`. `form`: f32 or bf16. A weight that is NaN stays
// NaN. Threads: several threads may decode different rows at once.
[[nodiscard]] Status decode_fp8(const Fp8Layer& layer, DType form, std::uint64_t first, std::uint64_t rows,
                                std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
