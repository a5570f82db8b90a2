// Lists the weight formats, and encodes and decodes whole rows of values in a format that is known at run time. The encoded bits do not
// depend on the host's compiler flags, because the encoders are compiled with the library's own flags (-ffp-contract=off).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera::formats {

// The size of a format's block: the number of weights that it holds, and its bytes.
struct Block {
  std::size_t values, bytes;
};

// Returns all weight formats, sorted by the bits that a value takes, most bits first.
[[nodiscard]] std::span<const DType> all() noexcept;

// Returns a format's block; nullopt if `type` is not a weight format.
[[nodiscard]] std::optional<Block> block_of(DType type) noexcept;

// Facts about a format, for programs that write model files.
struct Writing {
  std::uint32_t file_type;  // general.file_type of a file whose matrices have the format: llama.cpp's number
  DType fallback;           // format for matrices whose rows are not whole blocks; for formats of plain numbers (F16): the format itself
};

// Returns the facts about a format; nullopt if `type` is not a weight format, or if the library only reads the format.
[[nodiscard]] std::optional<Writing> writing_of(DType type) noexcept;

// Encode and decode a row. Errors: invalid_argument, `values` is not a whole number of blocks, or `blocks` has not exactly the bytes of
// these blocks; unsupported, `type` is not a weight format, or is a format that the library only reads (encode_row()). Threads: several at
// once.
[[nodiscard]] Status encode_row(DType type, std::span<const float> values, std::span<std::byte> blocks) noexcept;
[[nodiscard]] Status decode_row(DType type, std::span<const std::byte> blocks, std::span<float> values) noexcept;

}  // namespace tessera::formats
