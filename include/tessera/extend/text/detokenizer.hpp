// Turns tokens into text one at a time, for streams: a token may end in the middle of a character.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tessera/core/result.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// A stream of text. Small and copyable: a copy is a fork of the stream. The results of all push() calls and finish(), put together, are the
// text that Tokenizer::decode() returns for all tokens.
//
//   Detokenizer stream(engine.tokenizer());
//   for (const Token token : tokens) std::fputs(stream.push(token)->c_str(), stdout);
//   std::fputs(stream.finish().c_str(), stdout);
class Detokenizer {
 public:
  Detokenizer() noexcept;  // makes a stream without a tokenizer: push() returns an error
  explicit Detokenizer(Tokenizer tokenizer, DecodeOptions options = {}) noexcept;

  // Adds a token, and returns the text that is certain now: whole characters, possibly none. Bytes that can still become a character are
  // held back. Bytes that cannot become a character become U+FFFD, once for each maximal part of a sequence (Unicode 15, section 3.9).
  // Errors: invalid_argument, the token is not in the vocabulary; out_of_memory. After an error nothing has changed.
  [[nodiscard]] Result<std::string> push(Token token) noexcept;

  // Ends the stream: returns U+FFFD if a character is incomplete. Afterwards a new stream may begin.
  [[nodiscard]] std::string finish() noexcept;

  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_size_; }

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  bool at_start_;
  bool holds_space_ = false;        // true: a space is held back that is shown only between two tokens, so it comes with the next token
  std::uint8_t to_strip_ = 0;       // number of characters at the text's beginning that may still be dropped
  std::uint8_t held_size_ = 0;
  std::array<char, 3> held_{};
};

}  // namespace tessera
