#include "answers/answer_tokens.hpp"

#include <algorithm>

#include "failure.hpp"

namespace server {

using tessera::ControlText;
using tessera::FinishReason;

namespace {

// Returns how the first token of the answer becomes text: as the start of a text (some tokenizers then drop a leading space), or as the
// continuation of the prompt's text. As in generations, the answer starts a text if the prompt has only control tokens.
tessera::TextStart start_behind(const tessera::Tokenizer& tokenizer, std::span<const tessera::Token> prompt) {
  const bool has_text = std::ranges::any_of(prompt, [&](tessera::Token token) { return tokenizer.type(token) != tessera::TokenType::control; });
  return has_text ? tessera::TextStart::continuation : tessera::TextStart::sequence;
}

}  // namespace

AnswerTokens::AnswerTokens(const tessera::Tokenizer& tokenizer, const tessera::GenerateOptions& options, std::span<const tessera::Token> prompt)
    : tokenizer_(tokenizer),
      shown_(options.shown_control),
      shows_control_(options.control_text == ControlText::show),
      detokenizer_(tokenizer, {.control = options.control_text, .start = start_behind(tokenizer, prompt)}) {}

void AnswerTokens::push(const tessera::Piece& piece) {
  if (piece.finish == FinishReason::end_of_generation || piece.finish == FinishReason::stop_token) return;
  const bool is_control = tokenizer_.is_control(piece.token);
  const bool is_hidden = is_control && shows_control_ && shown_ && std::ranges::find(*shown_, piece.token) == shown_->end();
  if (is_hidden) return;
  std::string text = value(detokenizer_.push(piece.token));
  if (piece.finish != FinishReason::none) text += detokenizer_.finish();
  const std::size_t begin = bytes_, characters = characters_;
  bytes_ += text.size();
  characters_ += static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
  for (auto before = waiting_.rbegin(); !text.empty() && before != waiting_.rend() && before->begin == before->end; ++before) before->end = bytes_;
  waiting_.push_back({.piece = {.token = piece.token, .top = piece.top, .logprob = piece.logprob}, .begin = begin, .end = bytes_, .characters = characters});
}

std::vector<AnswerTokens::Token> AnswerTokens::take(std::span<const tessera::OutputSpan> spans) {
  std::vector<Token> taken;
  for (const tessera::OutputSpan& span : spans) {
    while (!waiting_.empty() && waiting_.front().begin < span.end) {
      if (waiting_.front().end > span.begin) taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  return taken;
}

std::vector<AnswerTokens::Token> AnswerTokens::take_rest() {
  std::vector<Token> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return taken;
}

}  // namespace server
