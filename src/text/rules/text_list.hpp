// A list of texts in one allocation, laid out as a ValueList reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <tessera/extend/files/settings.hpp>

namespace tessera::detail {

class TextList {
 public:
  void add(std::string_view text) {
    const std::uint64_t size = text.size();
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof size + text.size());
    std::memcpy(bytes_.data() + at, &size, sizeof size);
    if (!text.empty()) std::memcpy(bytes_.data() + at + sizeof size, text.data(), text.size());
    ++count_;
  }
  void reserve(std::size_t texts, std::size_t text_bytes) { bytes_.reserve(texts * sizeof(std::uint64_t) + text_bytes); }
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return bytes_.capacity(); }
  // Returns the texts, valid until the list changes.
  [[nodiscard]] ValueList values() const noexcept { return {ValueType::string, count_, bytes_}; }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t count_ = 0;
};

}  // namespace tessera::detail
