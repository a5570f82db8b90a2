// Reads the fields of a protobuf message one after another (protobuf.dev, "Encoding"). Memory does not grow with the message.
#pragma once

#include <cstdint>
#include <string_view>

#include <tessera/core/result.hpp>

#include "core/error.hpp"

namespace tessera::detail {

struct ProtobufField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;       // 0 varint, 1 eight bytes, 2 a text or message, 5 four bytes
  std::uint64_t integer = 0;    // types 0, 1 and 5
  std::string_view bytes;       // type 2
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) noexcept : rest_(message), size_(message.size()) {}

  // Reads the next field. Returns false at the end. Error: corrupt_file, with the offset in the message.
  [[nodiscard]] Result<bool> next(ProtobufField& field) {
    if (rest_.empty()) return false;
    TESSERA_TRY(const std::uint64_t key, varint());
    field = {.number = static_cast<std::uint32_t>(key >> 3), .type = static_cast<std::uint32_t>(key & 7), .integer = 0, .bytes = {}};
    if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF) return error("no field has this number");
    switch (field.type) {
      case 0: {
        TESSERA_TRY(field.integer, varint());
        return true;
      }
      case 1: return fixed(8, field);
      case 5: return fixed(4, field);
      case 2: {
        TESSERA_TRY(const std::uint64_t size, varint());
        if (size > rest_.size()) return error("a field is longer than the message");
        field.bytes = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(field.bytes.size());
        return true;
      }
      default: return error("no field has this type");
    }
  }

 private:
  [[nodiscard]] Error error(std::string_view what) const {
    return make_error(ErrorCode::corrupt_file, "not a protobuf message: {} (offset {})", what, size_ - rest_.size());
  }
  Result<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) return error("it ends in a number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80u) == 0) return value;
    }
    return error("a number has more than ten bytes");
  }
  Result<bool> fixed(std::size_t size, ProtobufField& field) {
    if (rest_.size() < size) return error("it ends in a number");
    for (std::size_t i = 0; i < size; ++i) field.integer |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  std::size_t size_;
};

}  // namespace tessera::detail
