// Tokens to text, one at a time, for streams: a token may end in the middle of a character.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tessera/core/result.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// Small and copyable: a copy is a fork of the stream. What push() gives, one after another and finish() last, is what
// Tokenizer::decode() gives for the whole.
class Detokenizer {
 public:
  Detokenizer() noexcept;  // of an empty Tokenizer: push() is an error that says so
  explicit Detokenizer(Tokenizer tokenizer, DecodeOptions options = {}) noexcept;

  // The text that is certain now: whole characters only, possibly none. Bytes that can still become a character are
  // held back; those that cannot become U+FFFD, one for each maximal part of a sequence (Unicode 15, section 3.9). On
  // error (a token that is not in the vocabulary, no memory) nothing has changed.
  [[nodiscard]] Result<std::string> push(Token token) noexcept;

  // The end of the stream: U+FFFD if a character is incomplete. Ready for a new stream afterwards.
  [[nodiscard]] std::string finish() noexcept;

  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_size_; }

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  bool at_start_;
  std::uint8_t held_size_ = 0;
  std::array<char, 3> held_{};
};

}  // namespace tessera
