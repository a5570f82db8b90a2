// A session's rows of logits. Their memory comes from the engine's Memory, because the rows are large: with a large vocabulary one row has
// half a megabyte, and the rows of a whole prompt can be larger than the model. A buffer has no memory before ensure(). The buffer of a
// fork shares the rows (share()). The rows are freed with the last buffer that has them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <tessera/extend/core/memory.hpp>

#include "core/guard.hpp"

namespace tessera::detail {

class LogitsBuffer {
 public:
  // Makes sure that `rows` rows may be written: rows that no copy of the session reads. Allocates new memory if the buffer is shared, too
  // small, or more than kExcess times as large as needed. The old content may be lost.
  Status ensure(Memory& memory, std::size_t rows, std::size_t vocab) {
    const std::size_t bytes = std::max<std::size_t>(rows, 1) * vocab * sizeof(float);
    if (is_writable(rows, vocab) && block_->buffer.size() / kExcess <= bytes) return {};
    block_.reset();
    auto block = std::make_shared<SharedBuffer>();
    TESSERA_TRY(block->buffer, Buffer::allocate(memory, bytes, "logits"));
    block_ = std::move(block);
    return {};
  }
  // Returns whether `rows` rows may be written now without calling ensure().
  [[nodiscard]] bool is_writable(std::size_t rows, std::size_t vocab) const noexcept {
    return block_ != nullptr && !block_->shared && block_->buffer.size() >= rows * vocab * sizeof(float);
  }

  // Returns a buffer with the same rows, for a copy of the session. From now on neither session writes to these rows.
  [[nodiscard]] LogitsBuffer share() const noexcept {
    if (block_ != nullptr) block_->shared = true;
    LogitsBuffer copy;
    copy.block_ = block_;
    return copy;
  }

  // Frees the memory if the buffer has more than kExcess rows.
  void drop_excess(std::size_t vocab) noexcept {
    if (block_ != nullptr && block_->buffer.size() / kExcess > vocab * sizeof(float)) block_.reset();
  }
  void drop() noexcept { block_.reset(); }

  [[nodiscard]] std::span<float> values() noexcept {
    if (block_ == nullptr) return {};
    return {reinterpret_cast<float*>(block_->buffer.data()), block_->buffer.size() / sizeof(float)};
  }
  [[nodiscard]] std::span<const float> values() const noexcept {
    if (block_ == nullptr) return {};
    return {reinterpret_cast<const float*>(block_->buffer.data()), block_->buffer.size() / sizeof(float)};
  }

 private:
  static constexpr std::size_t kExcess = 4;
  struct SharedBuffer {
    Buffer buffer;
    std::atomic<bool> shared = false;  // atomic: two threads may fork one session at once
  };
  std::shared_ptr<SharedBuffer> block_;
};

}  // namespace tessera::detail
