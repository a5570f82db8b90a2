// The pieces of a unigram vocabulary in the order of their bytes: all that begin alike stand together, and a text's
// next byte narrows where they are.
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

  // Of the tokens that text may become: normal and user-defined ones. false: stopped.
  [[nodiscard]] bool build(const Vocabulary& vocabulary, const std::stop_token& stop);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept {
    return metadata.size() * std::uint64_t{sizeof(std::uint32_t)};
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return order_.capacity() * sizeof(std::uint32_t); }

  // Those that begin with some `depth` bytes.
  struct Range {
    std::uint32_t begin, end, depth;
    [[nodiscard]] bool empty() const noexcept { return begin == end; }
  };
  [[nodiscard]] Range starting_with(unsigned char byte) const noexcept { return {first_[byte], first_[byte + 1u], 1}; }
  // Of a range that is not empty: those whose next byte is this one.
  [[nodiscard]] Range narrowed(Range range, unsigned char byte, const Vocabulary& vocabulary) const noexcept;
  // The token that ends after the range's depth, or kNoToken.
  [[nodiscard]] std::uint32_t whole(Range range, const Vocabulary& vocabulary) const noexcept {
    return vocabulary.piece(order_[range.begin]).size() == range.depth ? order_[range.begin] : kNoToken;
  }

 private:
  std::vector<std::uint32_t> order_;  // token ids; of equal pieces the lowest
  std::array<std::uint32_t, 257> first_{};  // where each first byte begins
};

}  // namespace tessera::detail
