// Finds special tokens in a text, before anything else is encoded. User-defined tokens are always found; control and unknown tokens only
// if the caller wants them parsed. If tokens overlap, the longest token of the whole text is taken first, then the longest that does not
// overlap it, and so on (as llama.cpp's tokenizer_st_partition does). Among equally long tokens, the one with the lower id is taken
// first, then the leftmost.
//
// A TextAutomaton reads the text once, and says at each byte which tokens end there. When the automaton is back at its root, no token
// that has begun can still go on. So overlaps are resolved stretch by stretch, from one return to the root to the next, without reading
// the rest of the text.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>
#include <vector>

#include "text/text_automaton.hpp"
#include "text/vocabulary.hpp"

namespace tessera::detail {

struct SpecialMatch {
  std::size_t begin, size;
  std::uint32_t id;
};

class SpecialTokens {
 public:
  SpecialTokens() = default;  // finds nothing
  explicit SpecialTokens(const Vocabulary& vocabulary);
  [[nodiscard]] static std::uint64_t plan_bytes(const TokenizerMetadata& metadata) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return automaton_.memory_bytes(); }

  // Finds the tokens in a text one after another. Needs at most nine bytes of memory for each byte of the text, and usually none.
  class Finder {
   public:
    Finder(const SpecialTokens& tokens, const Vocabulary& vocabulary, std::string_view text, Special special) noexcept
        : tokens_(tokens), vocabulary_(vocabulary), text_(text), parse_(special == Special::parse) {}
    // Finds the next token. Returns false if there is none.
    [[nodiscard]] bool next(SpecialMatch& match);

   private:
    [[nodiscard]] bool next_stretch();
    [[nodiscard]] bool overlap() const noexcept;
    void settle();
    [[nodiscard]] std::uint32_t token_at(std::uint32_t node, std::uint32_t longest) const noexcept;
    [[nodiscard]] std::uint32_t size_at(std::size_t i) const noexcept { return tokens_.automaton_.node(ends_[i]).size; }

    const SpecialTokens& tokens_;
    const Vocabulary& vocabulary_;
    std::string_view text_;
    bool parse_;
    std::size_t read_ = 0;   // number of bytes of the text that the automaton has read
    std::size_t begin_ = 0;  // offset in the text of the present stretch
    std::size_t at_ = 0;     // number of bytes of the stretch that next() has passed
    std::vector<std::uint32_t> ends_;  // [byte of the stretch]: node of the token that ends with this byte; 0: none
  };

 private:
  TextAutomaton automaton_;
  bool any_user_defined_ = false;
};

}  // namespace tessera::detail
