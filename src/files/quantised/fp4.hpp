// Weights of 4-bit floats (E2M1), two in a byte, the lower nibble first. Decoding is exact: the weights become our MXFP4 and NVFP4 blocks,
// which have the nibbles in another order.
//
// MXFP4 (gpt-oss): blocks U8 [rows, inputs / 32, 16], scales U8 [rows, inputs / 32]: weight = float * 2^(scale - 127).
// NVFP4 (compressed-tensors, ModelOpt): weights U8 [rows, inputs / 2], scales F8_E4M3 [rows, inputs / 16]; the matrix has one more scale,
// in another tensor, which the caller passes to the engine as the matrix's scale factor (compressed-tensors: the inverse of the number in
// the tensor).
#pragma once

#include "files/quantised/integer_rows.hpp"

namespace tessera::detail {

struct Fp4Rows {
  std::uint64_t rows, inputs;
  std::span<const std::byte> weights, scales;
};

// The rows to decode: `count` rows, `step` apart. gpt-oss interleaves the rows of gate and up: steps of 2 from 0 and from 1.
struct RowRange {
  std::uint64_t first, count, step = 1;
};

// Check that the tensors have the bytes that the shape needs, and that our blocks can represent each scale. Errors: unsupported, the inputs
// of a row do not fill whole blocks (MXFP4: of 32, NVFP4: of 64); corrupt_file. The functions below need rows that were checked.
[[nodiscard]] Status check_mxfp4(const Fp4Rows& rows) noexcept;
[[nodiscard]] Status check_nvfp4(const Fp4Rows& rows) noexcept;

// Decode rows into `out`, as DType::mxfp4 and DType::nvfp4. Threads: several threads may decode different rows at once.
[[nodiscard]] Status decode_mxfp4(const Fp4Rows& rows, const RowRange& range, std::span<std::byte> out) noexcept;
[[nodiscard]] Status decode_nvfp4(const Fp4Rows& rows, const RowRange& range, std::span<std::byte> out) noexcept;

}  // namespace tessera::detail
