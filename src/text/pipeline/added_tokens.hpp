// The added tokens of a tokenizer.json. They are found in a text before anything else is encoded: those that are not `normalized` in the
// text as it is, the others in the normalised text. From the left, the longest token that begins at a position is taken, as the crate
// `tokenizers` does it.
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
  std::string text;  // as it is found: normalised, if the token is `normalized`
  std::uint32_t id = 0;
  bool special = false;      // a control token: it is found only with Special::parse
  bool left_strip = false;   // white space in front of the token belongs to it
  bool right_strip = false;  // white space behind the token belongs to it
  bool single_word = false;  // the token is not found inside of a word
  bool normalized = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;  // finds nothing
  explicit AddedTokens(std::vector<AddedToken> tokens);
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  // Calls part(begin, end, id) for each token that is found, and part(begin, end, none) for each text between, in order; no part is empty.
  // With Special::as_text the text of a special token counts as text. Its memory is at most 12 bytes for each byte of the text, and usually
  // none.
  static constexpr std::uint32_t kText = TextAutomaton::kNone;
  using Part = std::function<Status(std::size_t begin, std::size_t end, std::uint32_t id)>;
  [[nodiscard]] Status split(std::string_view text, Special special, const Part& part) const;

 private:
  std::vector<AddedToken> tokens_;
  TextAutomaton backwards_;  // of the tokens' texts, read from their ends: it knows which tokens begin at a position
};

}  // namespace tessera::detail
