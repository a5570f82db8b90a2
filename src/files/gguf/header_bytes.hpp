// Provides the header's bytes to the parser, from one of two sources: a small window that slides over the file (to find the header's size
// before memory for it is allocated), or memory that has the whole header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/extend/files/byte_source.hpp>

namespace tessera::detail {

class HeaderBytes {
 public:
  // Reads through the window. `limit` is the file's size: no byte at or after this offset is read.
  HeaderBytes(ByteSource& source, std::span<std::byte> window, std::uint64_t limit) noexcept
      : source_(&source), window_(window), limit_(limit) {}
  explicit HeaderBytes(std::span<const std::byte> all) noexcept : view_(all), limit_(all.size()) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }

  // Returns the bytes [offset, offset + count), valid until the next call. Precondition: the bytes lie below limit() and fit into the
  // window.
  [[nodiscard]] Result<std::span<const std::byte>> view(std::uint64_t offset, std::size_t count) noexcept {
    if (offset < first_ || offset + count > first_ + view_.size()) {
      const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(window_.size(), limit_ - offset));
      view_ = {};  // if the read fails, the window's contents are undefined
      if (auto done = source_->read(offset, window_.first(want)); !done) return std::move(done).error();
      first_ = offset;
      view_ = window_.first(want);
    }
    return view_.subspan(static_cast<std::size_t>(offset - first_), count);
  }

 private:
  ByteSource* source_ = nullptr;
  std::span<std::byte> window_;
  std::span<const std::byte> view_;
  std::uint64_t first_ = 0;  // offset in the file of view_[0]
  std::uint64_t limit_;
};

}  // namespace tessera::detail
