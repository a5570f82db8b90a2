// Finds the added tokens of a tokenizer.json in a text, before anything else is encoded. Added tokens that are not `normalized` are found
// in the text as it is, the others in the normalised text. The search goes from left to right; of several tokens that begin at one
// position, the longest is taken, as in the crate `tokenizers`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/text/tokenizer.hpp>

#include "text/text_automaton.hpp"

namespace tessera::detail {

struct AddedToken {
  std::string text;  // the text that is searched for: normalised, if the token is `normalized`
  std::uint32_t id = 0;
  bool special = false;      // a control token: it is found only with Special::parse
  bool left_strip = false;   // white space before the token belongs to it
  bool right_strip = false;  // white space after the token belongs to it
  bool single_word = false;  // the token is not found inside of a word
  bool normalized = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;  // finds nothing
  explicit AddedTokens(std::vector<AddedToken> tokens);
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  // Divides a text at its added tokens. Calls part(begin, end, id) for each token that is found, and part(begin, end, kText) for each
  // text between tokens, in order. No part is empty. If `special` is Special::as_text, the text of a special token counts as ordinary
  // text. Needs at most 12 bytes of memory for each byte of the text, and usually none.
  static constexpr std::uint32_t kText = TextAutomaton::kNone;
  using Part = std::function<Status(std::size_t begin, std::size_t end, std::uint32_t id)>;
  [[nodiscard]] Status split(std::string_view text, Special special, const Part& part) const;

 private:
  std::vector<AddedToken> tokens_;
  TextAutomaton backwards_;  // automaton of the tokens' texts, read from their ends: it finds the tokens that begin at a position
};

}  // namespace tessera::detail
