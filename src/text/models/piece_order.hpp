// The pieces of a vocabulary, sorted by their bytes. Unigram and WordPiece use it to find all pieces with which a text begins: pieces
// with the same beginning are consecutive (a range), and each further byte of the text narrows the range.
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
  static constexpr std::size_t kLongestPiece = 511;  // in bytes; SentencePiece itself makes pieces of at most 16 characters

  // The spelling that a text is compared with: the tokens' pieces (U+2581 is a space), or their texts as the vocabulary spells them.
  enum class Spelling : std::uint8_t { piece, text };

  // Sorts the tokens that a text may consist of: normal and user-defined ones. Returns false if `stop` was requested.
  [[nodiscard]] bool build(const Vocabulary& vocabulary, const std::stop_token& stop, Spelling spelling = Spelling::piece);
  // Returns the bytes of a token with which a text is compared (Spelling).
  [[nodiscard]] std::string_view spelled(std::uint32_t id, const Vocabulary& vocabulary) const noexcept {
    return spelling_ == Spelling::piece ? vocabulary.piece(id) : vocabulary.text(id);
  }
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept {
    return metadata.size() * std::uint64_t{sizeof(std::uint32_t)};
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return order_.capacity() * sizeof(std::uint32_t); }

  // A range of pieces, all with the same first `depth` bytes.
  struct Range {
    std::uint32_t begin, end, depth;
    [[nodiscard]] bool empty() const noexcept { return begin == end; }
  };
  [[nodiscard]] Range starting_with(unsigned char byte) const noexcept { return {first_[byte], first_[byte + 1u], 1}; }
  // Returns those pieces of the range whose next byte is `byte`. Precondition: the range is not empty.
  [[nodiscard]] Range narrowed(Range range, unsigned char byte, const Vocabulary& vocabulary) const noexcept;
  // Returns the token whose piece ends at the range's depth, which means that the whole piece was matched; kNoToken if there is none.
  [[nodiscard]] std::uint32_t whole(Range range, const Vocabulary& vocabulary) const noexcept {
    return spelled(order_[range.begin], vocabulary).size() == range.depth ? order_[range.begin] : kNoToken;
  }

 private:
  std::vector<std::uint32_t> order_;  // token ids, sorted by piece; of equal pieces only the lowest id
  Spelling spelling_ = Spelling::piece;
  std::array<std::uint32_t, 257> first_{};  // [first byte of a piece]: where its range begins
};

}  // namespace tessera::detail
