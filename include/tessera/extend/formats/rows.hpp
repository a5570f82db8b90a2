// Weight formats, and whole rows of values to and from one that is known at run time. The encoders' bits are what the library's own
// flags give (-ffp-contract=off), whatever the host is compiled with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera::formats {

struct Block {
  std::size_t values, bytes;
};

// All weight formats, those of most bits a value first.
[[nodiscard]] std::span<const DType> all() noexcept;

// A format's block, or nullopt if `type` is not a weight format.
[[nodiscard]] std::optional<Block> block_of(DType type) noexcept;

// What a program that writes files in a format needs to know.
struct Writing {
  std::uint32_t file_type;  // general.file_type of a file whose matrices have it, llama.cpp's number
  DType fallback;           // what a matrix takes whose rows are not whole blocks of it; of plain numbers themselves
};

// nullopt for what is not a weight format, or one that is only read.
[[nodiscard]] std::optional<Writing> writing_of(DType type) noexcept;

// `values` must be whole blocks and `blocks` exactly their bytes, else invalid_argument; a type that is not a weight
// format, or to encode one that is only read, is unsupported. May be called from several threads.
[[nodiscard]] Status encode_row(DType type, std::span<const float> values, std::span<std::byte> blocks) noexcept;
[[nodiscard]] Status decode_row(DType type, std::span<const std::byte> blocks, std::span<float> values) noexcept;

}  // namespace tessera::formats
