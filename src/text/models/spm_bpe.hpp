// SentencePiece BPE as llama.cpp implements it. A text begins as single characters. Neighbours whose joined text is a token are joined,
// always the pair whose token has the highest score, of equal scores the leftmost. A character without a token becomes the tokens of its
// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/models/merge.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// Finds positions where a text can be cut without changing its tokens: before a space, if no token has the preceding byte followed by a
// space. Most vocabularies have no token with a space inside. Then texts can be cut into words, which are short.
class SpaceCuts {
 public:
  SpaceCuts() noexcept = default;  // as for an empty vocabulary
  explicit SpaceCuts(const Vocabulary& vocabulary) noexcept;
  // Returns the next position at or after `from` at which the text can be cut; text.size() if there is none.
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t from) const noexcept;

 private:
  std::array<bool, 256> joined_{};  // [byte]: true if some token has this byte followed by a space
};

// Encodes texts, with working memory that lasts for one encode() call of the tokenizer. A space is U+2581 in the vocabulary, but one byte
// here.
class SpmBpe {
 public:
  SpmBpe(const Vocabulary& vocabulary, const SpaceCuts& cuts) noexcept : vocabulary_(vocabulary), cuts_(cuts) {}
  void encode(std::string_view text, TokenList& out);

 private:
  void encode_part(std::string_view text, TokenList& out);
  void emit(std::string_view symbol, TokenList& out);
  [[nodiscard]] std::uint32_t find(std::string_view symbol);
  [[nodiscard]] std::string_view escaped(std::string_view symbol);

  const Vocabulary& vocabulary_;
  const SpaceCuts& cuts_;
  Merge symbols_;
  std::string scratch_;
};

}  // namespace tessera::detail
