// SentencePiece BPE as llama.cpp runs it: characters join, the pair whose token has the highest score first (leftmost
// of equals), until no pair is a token. A character that is no token becomes its bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge_queue.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

// Working memory of one encode() call.
class SpmBpe {
 public:
  explicit SpmBpe(const Vocabulary& vocabulary) noexcept : vocabulary_(vocabulary) {}
  // `text` has its spaces written as U+2581.
  void encode(std::string_view text, std::vector<Token>& out);

 private:
  struct Symbol {
    std::uint32_t begin, size;  // in text; size 0: merged into another
    std::uint32_t previous, next;
  };
  void offer(std::string_view text, std::uint32_t left, std::uint32_t right, bool ordered);
  void emit(std::string_view symbol, std::vector<Token>& out) const;

  const Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;
  MergeQueue queue_;
};

}  // namespace tessera::detail
