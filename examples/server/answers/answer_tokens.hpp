// Finds the tokens of an output that belong to the answer's text, not to reasoning, calls or markers. Clients get log-probabilities only
// for these tokens.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <tessera/extend/chat/output_parser.hpp>
#include <tessera/extend/text/detokenizer.hpp>
#include <tessera/generation.hpp>

namespace server {

class AnswerTokens {
 public:
  struct Token {
    tessera::Piece piece{};
    std::size_t begin = 0, end = 0;  // the token's bytes in the output; if the token is a part of a character: the character's bytes
    std::size_t characters = 0;      // characters of the output in front of the token
  };

  // `options` and `prompt` must be those of the generation, because tokens must become text here in the same way: with or without control
  // tokens, as the start of a text or after the prompt's text.
  AnswerTokens(const tessera::Tokenizer& tokenizer, const tessera::GenerateOptions& options, std::span<const tessera::Token> prompt);

  // Adds a token of the output. Call it for every token, in order.
  void push(const tessera::Piece& piece);
  // Returns the tokens of the text in `spans`, which must ascend, and forgets them. Drops earlier tokens that are in no span.
  [[nodiscard]] std::vector<Token> take(std::span<const tessera::OutputSpan> spans);
  // Returns all tokens that are left, and forgets them.
  [[nodiscard]] std::vector<Token> take_rest();

 private:
  tessera::Tokenizer tokenizer_;
  std::optional<std::vector<tessera::Token>> shown_;
  bool shows_control_;
  tessera::Detokenizer detokenizer_;
  std::deque<Token> waiting_;
  std::size_t bytes_ = 0, characters_ = 0;
};

}  // namespace server
