// SentencePiece's BPE as llama.cpp implements it. At first each character of a text is a symbol of its own. Two neighbouring symbols can
// be joined if their joined text is a token. The pair whose token has the highest score is always joined first; of pairs with equal
// scores, the leftmost. In the end a character that is no token becomes the tokens of its bytes.
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

// Finds positions at which a text can be cut into parts that are encoded separately, without changing the tokens. A cut before a space is
// possible if no token of the vocabulary contains the byte before the cut followed by a space. In most vocabularies no token has a space
// inside. Then a text can be cut before each space, and the parts are short.
class SpaceCuts {
 public:
  SpaceCuts() noexcept = default;  // as for an empty vocabulary
  explicit SpaceCuts(const Vocabulary& vocabulary) noexcept;
  // Returns the next position at or after `from` at which the text can be cut; text.size() if there is none.
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t from) const noexcept;

 private:
  std::array<bool, 256> joined_{};  // [byte]: true if some token has this byte followed by a space
};

// Encodes texts. The object holds working memory, and lasts for one encode() call of the tokenizer. Spaces are one byte in the texts that
// it gets, but U+2581 (three bytes) in the texts of the vocabulary; the object converts where it compares the two.
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
