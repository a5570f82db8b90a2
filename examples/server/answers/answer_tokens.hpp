// Finds the tokens of an output that belong to the answer's text, not to reasoning, calls or markers. Clients get the log-probabilities of
// these tokens alone, once it is certain which they are.
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
    std::size_t begin = 0, end = 0;  // the token's bytes in the output; a token that is a part of a character has the whole character's
    std::size_t characters = 0;      // characters of the output in front of the token
  };

  // Pass the `options` and the `prompt` of the generation. Then tokens become text in the same way as in the generation (control text,
  // shown control tokens, the place where the prompt ends).
  AnswerTokens(const tessera::Tokenizer& tokenizer, const tessera::GenerateOptions& options, std::span<const tessera::Token> prompt);

  // Adds a token of the output. Call it for every token, in order.
  void push(const tessera::Piece& piece);
  // Takes the tokens of the text in `spans`, which must ascend. Earlier tokens that are in no span are dropped.
  [[nodiscard]] std::vector<Token> take(std::span<const tessera::OutputSpan> spans);
  // Takes all tokens that are left.
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
