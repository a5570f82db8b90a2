// BPE on the characters of a text, not on its bytes, as Gemma 4 has it. At first each character is a symbol of its own (a space is
// U+2581). Neighbouring symbols are joined as the list of merges says: always the pair with the lowest rank; of pairs with equal ranks,
// the leftmost. In the end a character that is no token becomes the tokens of its bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/models/byte_bpe.hpp"
#include "text/models/merge.hpp"
#include "text/models/spm_bpe.hpp"
#include "text/token_list.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// Encodes texts, with working memory that lasts for one encode() call of the tokenizer. A space is stored as one byte here.
class RawBpe {
 public:
  RawBpe(const Vocabulary& vocabulary, const MergeTable& merges, const SpaceCuts& cuts) noexcept
      : vocabulary_(vocabulary), merges_(merges), cuts_(cuts) {}
  // Encodes the text between two special tokens, and appends its tokens to `out`.
  void encode(std::string_view text, TokenList& out);

 private:
  void encode_part(std::string_view text, TokenList& out);
  void add_bytes(std::string_view character, TokenList& out);

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  const SpaceCuts& cuts_;
  std::vector<std::uint32_t> ids_;  // [byte of the text]: the token of the symbol that begins there; kNoToken: the character has no token
  Merge symbols_;
  bool unknown_before_ = false;  // true: the last token was the unknown token; consecutive characters and bytes without tokens share one
};

}  // namespace tessera::detail
