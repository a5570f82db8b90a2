// Weight formats, and whole rows of values to and from one that is known at run time. The encoders' bits are what the library's own
// flags give (-ffp-contract=off), whatever the host is compiled with.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera::formats {

struct Block {
  std::size_t values, bytes;
};

// A format's block, or nullopt if `type` is not a weight format.
[[nodiscard]] std::optional<Block> block_of(DType type) noexcept;

// `values` must be whole blocks and `blocks` exactly their bytes, else invalid_argument; a type that is not a weight
// format is unsupported. May be called from several threads.
[[nodiscard]] Status encode_row(DType type, std::span<const float> values, std::span<std::byte> blocks) noexcept;
[[nodiscard]] Status decode_row(DType type, std::span<const std::byte> blocks, std::span<float> values) noexcept;

}  // namespace tessera::formats
