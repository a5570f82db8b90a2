// SentencePiece BPE as llama.cpp runs it: characters join, the pair whose token has the highest score first (leftmost
// of equals), until no pair is a token. A character that is no token becomes its bytes.
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

// Places where a text may be cut without changing its tokens: in front of a space that no token joins to the byte before it. Most
// vocabularies have no token with a space inside, so every word can be cut off by itself, and is small.
class SpaceCuts {
 public:
  explicit SpaceCuts(const Vocabulary& vocabulary) noexcept;
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t from) const noexcept;  // text.size() if there is none

 private:
  std::array<bool, 256> joined_{};  // by the byte in front: a token joins it to a space
};

// Working memory of one encode() call. A space of the text is U+2581 to the vocabulary, and stays one byte here.
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
