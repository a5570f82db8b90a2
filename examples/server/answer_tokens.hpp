// Which tokens of an output are the answer's: log-probabilities are told of those alone, and not before their text is certain.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <tessera/chat/output_parser.hpp>
#include <tessera/generation.hpp>
#include <tessera/text/detokenizer.hpp>

namespace server {

class AnswerTokens {
 public:
  struct Token {
    tessera::Piece piece{};
    std::size_t begin = 0, end = 0;  // bytes of the output that it gives; a token within a character gives the character
    std::size_t characters = 0;      // of the output in front of it
  };

  // How the generation makes text of its tokens.
  AnswerTokens(const tessera::Tokenizer& tokenizer, const tessera::GenerateOptions& options, std::span<const tessera::Token> prompt);

  // Every token of the output, in order.
  void push(const tessera::Piece& piece);
  // The tokens of the text that stood there; those in front of it that are in none are forgotten. Spans ascend.
  [[nodiscard]] std::vector<Token> take(std::span<const tessera::OutputSpan> spans);
  // All that are left.
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
