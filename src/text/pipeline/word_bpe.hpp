// BPE on the characters of a word, as the crate `tokenizers` does it. At first each character is a symbol of its own, and neighbouring
// symbols are joined in the order of the ranks of merges. In the end a character that is no token becomes the tokens of its bytes, the
// unknown token, or nothing, as the tokenizer.json says.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/byte_bpe.hpp"
#include "text/models/merge.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

struct WordBpeRules {
  std::string prefix;  // in the vocabulary, stands before every character of a word except the first
  std::string suffix;  // in the vocabulary, stands after the last character of a word
  bool byte_fallback = false, fuse_unknown = false, ignore_merges = false;
  bool ranks_of_results = false;  // merges with the same result have the same rank (MergeTable::share_ranks)
};

// Finds positions at which a word can be cut into parts that are encoded separately, without changing the tokens. A cut before a mark
// (U+2581) is possible if no token of the vocabulary contains the byte before the cut followed by a mark. For the tokenizers of Llama 2
// and Gemma a whole text is one word; these cuts make short parts of it.
class MarkCuts {
 public:
  MarkCuts() noexcept = default;  // finds no position
  MarkCuts(const Vocabulary& vocabulary, const WordBpeRules& rules) noexcept;
  // Returns the next position after `from` at which the word can be cut; word.size() if there is none.
  [[nodiscard]] std::size_t next(std::string_view word, std::size_t from) const noexcept;

 private:
  bool any_ = false;
  std::array<bool, 256> joined_{};  // [byte]: true if some token has this byte followed by a mark
};

// Encodes words, with working memory that lasts for one encode() call of the tokenizer.
class WordBpe {
 public:
  WordBpe(const Vocabulary& vocabulary, const MergeTable& merges, const WordBpeRules& rules, const MarkCuts& cuts) noexcept
      : vocabulary_(vocabulary), merges_(merges), rules_(rules), cuts_(cuts) {}
  void encode(std::string_view word, TokenList& out);  // precondition: valid UTF-8

 private:
  void encode_part(std::string_view part, bool first, bool last, TokenList& out);
  [[nodiscard]] std::uint32_t token_of(std::string_view character, bool first, bool last);
  [[nodiscard]] bool add_bytes(std::string_view character);

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  const WordBpeRules& rules_;
  const MarkCuts& cuts_;
  std::vector<std::uint32_t> ids_;  // [symbol]: its token
  Merge symbols_;                   // a symbol's position is its index
  std::string scratch_;
};

}  // namespace tessera::detail
