// Rows of logits in the engine's Memory: a row of a large vocabulary is half a megabyte, and all rows of a prompt can
// be more than the model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <tessera/core/memory.hpp>

#include "support/guard.hpp"

namespace tessera::detail {

class LogitsBuffer {
 public:
  // Room for `rows` rows, at least one. What it held may be lost. Memory for many more rows than these goes back.
  Status ensure(Memory& memory, std::size_t rows, std::size_t vocab) noexcept {
    const std::size_t bytes = std::max<std::size_t>(rows, 1) * vocab * sizeof(float);
    if (buffer_.size() >= bytes && buffer_.size() / kExcess <= bytes) return {};
    buffer_ = Buffer();
    TESSERA_TRY(buffer_, Buffer::allocate(memory, bytes, "logits"));
    return {};
  }

  // Gives memory for many rows back.
  void drop_excess(std::size_t vocab) noexcept {
    if (buffer_.size() / kExcess > vocab * sizeof(float)) buffer_ = Buffer();
  }

  [[nodiscard]] std::span<float> values() noexcept {
    return {reinterpret_cast<float*>(buffer_.data()), buffer_.size() / sizeof(float)};
  }
  [[nodiscard]] std::span<const float> values() const noexcept {
    return {reinterpret_cast<const float*>(buffer_.data()), buffer_.size() / sizeof(float)};
  }

 private:
  static constexpr std::size_t kExcess = 4;
  Buffer buffer_;
};

}  // namespace tessera::detail
