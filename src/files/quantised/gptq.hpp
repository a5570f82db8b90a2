// GPTQ checkpoints (AutoGPTQ, GPTQModel): integers of 2, 3, 4 or 8 bits, packed along the inputs.
//
//   qweight  I32 [inputs * bits / 32, outputs]: word j of output r has the bits 32 j to 32 j + 31 of the stream of the
//            output's integers
//   qzeros   I32 [groups, outputs * bits / 32]: a group's zero points as a stream along the outputs
//   scales   F16 [groups, outputs]
//   g_idx    I32 [inputs]: the group of each input; with act-order not in ascending order
//
// weight = scale * (integer - zero). The files differ in how they store `zero` (GptqVersion):
//   v1        zero - 1 (modulo 2^bits)
//   v2        zero ("checkpoint_format": "gptq_v2")
//   v1_words  as GPTQModel writes version 1. With 3 bits: as v1. With 2, 4 and 8 bits: it subtracts 1 from all integers of a word at once,
//             so a zero point of 0 borrows from the next integer. The reader adds 1 to all integers of the word at once, which undoes this
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

enum class GptqVersion : std::uint8_t { v1, v1_words, v2 };

struct GptqLayer {
  LinearShape shape;
  unsigned bits = 4;
  GptqVersion version = GptqVersion::v1;
  bool symmetric = true;  // "sym" of the configuration: all zero points are 2^(bits - 1)
  ScaleType scale_type = ScaleType::f16;
  std::span<const std::byte> qweight, qzeros, scales;
  std::span<const std::byte> g_idx = {};  // empty: input / group
};

// Returns the type of the decoded rows: a block format if blocks can represent the weights exactly, else a type of single numbers.
// `act_order`: the result of check_gptq(). If it is true, g_idx is not input / group, so the inputs of a block can have different scales.
[[nodiscard]] DType gptq_form(const GptqLayer& layer, bool act_order) noexcept;

// Checks that all tensors have the bytes that the shape needs, and that g_idx names groups that exist. Returns whether the layer has
// another order of groups than the plain one (input i in the group i / inputs of a group). Errors: unsupported, another number of bits;
// corrupt_file. The functions below need a layer that was checked.
[[nodiscard]] Result<bool> check_gptq(const GptqLayer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`. The rows have the type that gptq_form() returns. If it is a block
// format: the weights are exact. If it is a type of single numbers: each weight is rounded once. Errors: corrupt_file, the layer is
// `symmetric` and a zero point is not 2^(bits - 1). Threads: several threads may decode different rows at once.
[[nodiscard]] Status decode_gptq(const GptqLayer& layer, bool act_order, std::uint64_t first, std::uint64_t rows,
                                 std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
