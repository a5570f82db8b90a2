// Constants for the reader and the writer of GGUF: the format's own (ggml/docs/gguf.md), and limits of tessera where the
// specification sets none.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include <tessera/extend/files/gguf.hpp>

#include "files/ggml_types.hpp"
#include "files/value_types.hpp"

namespace tessera::detail {

static_assert(std::endian::native == std::endian::little, "GGUF values are copied as they lie");

inline constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF"
inline constexpr std::uint32_t kGgufVersion = 3;
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::string_view kAlignmentKey = "general.alignment";

// The limits bound the memory that a hostile file can make us take: the header's own bytes and some 25 MB of descriptions. The
// largest models known have about a hundred keys and some ten thousand tensors.
inline constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxKeys = 1 << 16;
inline constexpr std::uint64_t kMaxTensors = 1 << 18;
inline constexpr std::uint64_t kMaxKeyBytes = 65535;  // specification
inline constexpr std::uint64_t kMaxTensorNameBytes = 256;  // specification: 64; some converters write longer ones
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;

[[nodiscard]] constexpr bool is_valid_alignment(std::uint64_t alignment) noexcept {
  return alignment > 0 && alignment <= kMaxAlignment && alignment % 8 == 0;
}

}  // namespace tessera::detail
