// TextState turns drawn tokens into text and finish reasons. Programs use it through the public class TextStream; classes of the library
// have a TextState as a member instead.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/extend/text/detokenizer.hpp>
#include <tessera/generation.hpp>
#include <tessera/session.hpp>

#include "decoding/stop_matcher.hpp"

namespace tessera::detail {

// Returns whether the generated text begins a new text, or continues the text of the session's tokens and the prompt. This matters for a
// leading space, which is dropped at the beginning of a new text.
[[nodiscard]] TextStart text_start(const Session::State& session, std::span<const Token> prompt = {});

class TextState {
 public:
  // Takes the figures of computed prompt tokens over from the session. `prompt` has the tokens of the prompt that are not computed yet.
  TextState(Session::State& session, const GenerateOptions& options, std::span<const Token> prompt = {});
  TextState(const TextState&) = delete;  // must not be copied, because matcher_ refers to options_
  TextState& operator=(const TextState&) = delete;

  // Checks the options. Error: invalid_argument, an enum has an undefined value.
  [[nodiscard]] static Status check(const GenerateOptions& options);

  [[nodiscard]] Status check_goes_on() const;
  // Sets the piece's text and finish reason from its token. After an error nothing has changed.
  Status push(Piece& piece);

  [[nodiscard]] const GenerateOptions& options() const noexcept { return options_; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return finish_; }
  // Updates Figures::bytes_per_token. `kv_tokens`: number of tokens whose keys and values the last step read.
  void set_kv_tokens(std::uint64_t kv_tokens) noexcept;
  [[nodiscard]] const Figures& figures() const noexcept { return figures_; }
  void count_step(std::size_t drafts) noexcept {
    ++figures_.steps;
    figures_.drafted += drafts;
  }
  void count_accepted() noexcept { ++figures_.accepted; }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] FinishReason reason_to_finish(Token token) const;
  [[nodiscard]] bool is_hidden(Token token) const;
  void count_token() noexcept;

  GenerateOptions options_;
  Tokenizer tokenizer_;
  Detokenizer detokenizer_;
  StopMatcher matcher_;
  std::uint64_t weights_per_token_, kv_per_token_, kv_tokens_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point first_;  // when the first token was drawn
  FinishReason finish_ = FinishReason::none;
  Figures figures_;
};

}  // namespace tessera::detail
