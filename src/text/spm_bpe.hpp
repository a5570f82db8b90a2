// SentencePiece BPE as llama.cpp runs it: characters join, the pair whose token has the highest score first (leftmost
// of equals), until no pair is a token. A character that is no token becomes its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge_queue.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// Where a text may be cut without changing its tokens: before a U+2581 that no token joins to the byte in front of it.
// Most vocabularies have no token with a space inside, so that every word is a part of its own, and small.
class SpaceCuts {
 public:
  explicit SpaceCuts(const Vocabulary& vocabulary) noexcept;
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t from) const noexcept;  // text.size() if none

 private:
  std::array<bool, 256> joined_{};  // by the byte in front
};

// Working memory of one encode() call.
class SpmBpe {
 public:
  SpmBpe(const Vocabulary& vocabulary, const SpaceCuts& cuts) noexcept : vocabulary_(vocabulary), cuts_(cuts) {}
  // `text` has its spaces written as U+2581.
  void encode(std::string_view text, std::vector<Token>& out);

 private:
  struct Symbol {
    std::uint32_t begin, size;  // in text; size 0: merged into another
    std::uint32_t previous, next;
  };
  void encode_part(std::string_view text, std::vector<Token>& out);
  void offer(std::string_view text, std::uint32_t left, std::uint32_t right);
  void emit(std::string_view symbol, std::vector<Token>& out) const;

  const Vocabulary& vocabulary_;
  const SpaceCuts& cuts_;
  std::vector<Symbol> symbols_;
  MergeQueue queue_;
};

}  // namespace tessera::detail
