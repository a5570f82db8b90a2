// WordPiece (Schuster & Nakajima, 2012) as BERT uses it. Cuts a word from left to right: takes the longest token with which the word
// begins, then the longest token with which the rest begins, and so on. A word that cannot be cut completely in this way becomes the
// unknown token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/piece_order.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

struct WordPieceRules {
  std::string prefix;               // in the vocabulary, stands before tokens that continue a word
  std::uint64_t longest_word = 100;  // in characters; longer words are unknown
};

class WordPiece {
 public:
  WordPiece(const Vocabulary& vocabulary, const PieceOrder& texts, const WordPieceRules& rules) noexcept
      : vocabulary_(vocabulary), texts_(texts), rules_(rules) {}
  void encode(std::string_view word, TokenList& out);  // precondition: valid UTF-8

 private:
  // A token, and how many bytes of the word it covers.
  struct Longest {
    std::uint32_t id;
    std::size_t size;
  };
  [[nodiscard]] Longest longest(std::string_view rest, bool first) const noexcept;

  const Vocabulary& vocabulary_;
  const PieceOrder& texts_;  // sorted by the tokens' texts
  const WordPieceRules& rules_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace tessera::detail
