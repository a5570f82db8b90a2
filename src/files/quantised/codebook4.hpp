// Weights of 4 bits that are indices into a table (bitsandbytes NF4 and FP4), with a scale for each block of consecutive weights. Blocks
// run through the whole matrix, so a block may contain the end of one row and the beginning of the next.
//
//   weight                  U8 [values / 2 rounded up, 1]: the high nibble first
//   weight.quant_map        F32 [16]: the table
//   weight.absmax           the scales. F32 [blocks]; or, if the scales are quantised too (nested), U8 [blocks]
//   weight.nested_absmax, weight.nested_quant_map   only if nested: F32 [blocks / nested_block rounded up], F32 [256]
//
// weight = table[nibble] * absmax. If nested: absmax = nested_table[byte] * nested_absmax + nested_offset. None of our block formats can
// represent these weights, so rows are decoded to single numbers. Each operation is rounded to F32, and the weight then to the type that
// bitsandbytes decodes to.
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

struct Codebook4Layer {
  std::uint64_t outputs, inputs;
  std::uint64_t block = 64;          // weights that share a scale ("blocksize")
  std::uint64_t nested_block = 256;  // scales that share a scale ("nested_blocksize")
  float nested_offset = 0;           // "nested_offset"
  DType form = DType::f32;           // form of the rows: f32, f16 or bf16 ("dtype")
  std::span<const std::byte> weight, table, absmax;
  std::span<const std::byte> nested_absmax = {}, nested_table = {};  // both empty: absmax is F32
};

// Checks that the tensors have the bytes that the shape needs. decode_codebook4() needs a layer that was checked.
[[nodiscard]] Status check_codebook4(const Codebook4Layer& layer) noexcept;

// Decodes the rows of the outputs [first, first + rows) into `out`, as numbers of the type that bitsandbytes decodes to. Threads: several
// threads may decode different rows at once.
[[nodiscard]] Status decode_codebook4(const Codebook4Layer& layer, std::uint64_t first, std::uint64_t rows,
                                      std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
