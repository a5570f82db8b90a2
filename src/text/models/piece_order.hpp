// The pieces of a unigram vocabulary in the order of their bytes: pieces that begin alike stand together, and each next byte of a text
// narrows the range.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "text/vocabulary.hpp"

namespace tessera::detail {

class PieceOrder {
 public:
  static constexpr std::size_t kLongestPiece = 511;  // bytes; SentencePiece's own have 16 characters

  // Orders the tokens that text may become: normal and user-defined ones. Returns false if it was stopped.
  [[nodiscard]] bool build(const Vocabulary& vocabulary, const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept {
    return metadata.size() * std::uint64_t{sizeof(std::uint32_t)};
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return order_.capacity() * sizeof(std::uint32_t); }

  // The pieces that begin with the same `depth` bytes.
  struct Range {
    std::uint32_t begin, end, depth;
    [[nodiscard]] bool empty() const noexcept { return begin == end; }
  };
  [[nodiscard]] Range starting_with(unsigned char byte) const noexcept { return {first_[byte], first_[byte + 1u], 1}; }
  // Returns the pieces of a range whose next byte is `byte`. Precondition: the range is not empty.
  [[nodiscard]] Range narrowed(Range range, unsigned char byte, const Vocabulary& vocabulary) const noexcept;
  // Returns the token that ends at the range's depth; kNoToken if there is none.
  [[nodiscard]] std::uint32_t whole(Range range, const Vocabulary& vocabulary) const noexcept {
    return vocabulary.piece(order_[range.begin]).size() == range.depth ? order_[range.begin] : kNoToken;
  }

 private:
  std::vector<std::uint32_t> order_;  // token ids; of equal pieces the lowest
  std::array<std::uint32_t, 257> first_{};  // beginning of each first byte
};

}  // namespace tessera::detail
