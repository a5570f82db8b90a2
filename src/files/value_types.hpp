// The bytes that a value of each ValueType has in a model file, and a function that reads a value from the file's bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include <tessera/extend/files/settings.hpp>

namespace tessera::detail {

// Returns how many bytes a value of this type takes. 0: the type has no fixed size (strings, arrays), or `type` is not a known ValueType.
[[nodiscard]] constexpr std::uint64_t value_bytes(ValueType type) noexcept {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean: return 1;
    case ValueType::u16:
    case ValueType::i16: return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32: return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64: return 8;
    case ValueType::string:
    case ValueType::array: return 0;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_known(ValueType type) noexcept { return static_cast<std::uint32_t>(type) <= 12; }

// Reads a T from an address that need not be aligned (values in a file are not aligned).
template <class T>
[[nodiscard]] T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace tessera::detail
