// Weights of 3 or 4 bits that are indices into a table. Each output has its own table (SqueezeLLM).
//
//   qweight       I32 [inputs * bits / 32, outputs]: packed along the inputs, as in GPTQ (gptq.hpp)
//   lookup_table  F16, BF16 or F32 [outputs, 2^bits]
//
// weight = table[integer]. Decoded rows have the table's number type, so decoding is exact.
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

struct CodebookRowsLayer {
  std::uint64_t outputs, inputs;
  unsigned bits = 4;
  ScaleType type = ScaleType::f16;  // the table's type
  std::span<const std::byte> qweight, table;
};

[[nodiscard]] DType codebook_rows_form(const CodebookRowsLayer& layer) noexcept;

// Checks that the tensors have the bytes that the shape needs. decode_codebook_rows() needs a layer that was checked.
[[nodiscard]] Status check_codebook_rows(const CodebookRowsLayer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`, in codebook_rows_form(). Threads: several threads may decode different
// rows at once.
[[nodiscard]] Status decode_codebook_rows(const CodebookRowsLayer& layer, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
