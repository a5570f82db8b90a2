// BPE over raw UTF-8, as Gemma 4 has it: characters join by ranked merges, the lowest rank first (leftmost of equals); a space is U+2581. A
// character that is no token becomes its bytes.
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

// Working memory of one encode() call. A space of the text stays one byte here.
class RawBpe {
 public:
  RawBpe(const Vocabulary& vocabulary, const MergeTable& merges, const SpaceCuts& cuts) noexcept
      : vocabulary_(vocabulary), merges_(merges), cuts_(cuts) {}
  // Encodes a text between special tokens.
  void encode(std::string_view text, TokenList& out);

 private:
  void encode_part(std::string_view text, TokenList& out);
  void add_bytes(std::string_view character, TokenList& out);

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  const SpaceCuts& cuts_;
  std::vector<std::uint32_t> ids_;  // token of the symbol that begins at each byte; kNoToken: a character without a token
  Merge symbols_;
  bool unknown_before_ = false;  // characters and bytes without tokens that follow each other are one unknown token
};

}  // namespace tessera::detail
