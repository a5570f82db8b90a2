// Constants for the reader and the writer of GGUF: constants of the format (ggml/docs/gguf.md), and tessera's limits for numbers that the
// specification does not limit.
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

// Limits on the memory that a malicious file can make the reader allocate. With these limits, the reader takes at most the bytes of the
// header and about 25 MB for descriptions of keys and tensors. Known models are far below the limits: the largest have about a hundred keys
// and ten thousand tensors.
inline constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxKeys = 1 << 16;
inline constexpr std::uint64_t kMaxTensors = 1 << 18;
inline constexpr std::uint64_t kMaxKeyBytes = 65535;  // limit of the specification
inline constexpr std::uint64_t kMaxTensorNameBytes = 256;  // the specification allows 64, but some converters write longer names
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;

[[nodiscard]] constexpr bool is_valid_alignment(std::uint64_t alignment) noexcept {
  return alignment > 0 && alignment <= kMaxAlignment && alignment % 8 == 0;
}

}  // namespace tessera::detail
