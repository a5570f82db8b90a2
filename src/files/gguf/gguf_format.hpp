// What the reader and the writer of GGUF share: the format's constants, the sizes of its values, and the limits that
// tessera sets where the specification sets none (ggml/docs/gguf.md).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tessera/extend/files/gguf.hpp>

namespace tessera::detail {

static_assert(std::endian::native == std::endian::little, "GGUF values are copied as they lie");

inline constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF"
inline constexpr std::uint32_t kGgufVersion = 3;
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::string_view kAlignmentKey = "general.alignment";

// The limits keep what a hostile file can make us hold in bounds: its own bytes and some 25 MB of descriptions. The
// largest models known have about a hundred keys and some ten thousand tensors.
inline constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxKeys = 1 << 16;
inline constexpr std::uint64_t kMaxTensors = 1 << 18;
inline constexpr std::uint64_t kMaxKeyBytes = 65535;  // specification
inline constexpr std::uint64_t kMaxTensorNameBytes = 256;  // specification: 64; some converters write longer ones
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;

// Of a value of fixed size; 0 for strings, arrays and ids that GGUF does not know.
[[nodiscard]] constexpr std::uint64_t value_bytes(GgufType type) noexcept {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    case GgufType::string:
    case GgufType::array: return 0;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_known(GgufType type) noexcept { return static_cast<std::uint32_t>(type) <= 12; }

[[nodiscard]] constexpr bool is_valid_alignment(std::uint64_t alignment) noexcept {
  return alignment > 0 && alignment <= kMaxAlignment && alignment % 8 == 0;
}

// From any address: values in a file are not aligned.
template <class T>
[[nodiscard]] T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The name of a ggml type, also of those that tessera does not read; "unknown" for other ids.
[[nodiscard]] std::string_view ggml_type_name(std::uint32_t id) noexcept;

}  // namespace tessera::detail
