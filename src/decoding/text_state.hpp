// TextState turns drawn tokens into text and finish reasons. It does the work of TextStream for classes of the library that have it as a
// member.
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

// Returns whether the generated text begins a new text or continues one (the session's tokens and the prompt). In a new text a leading
// space is dropped.
[[nodiscard]] TextStart text_start(const Session::State& session, std::span<const Token> prompt = {});

class TextState {
 public:
  // Takes over the figures of the prompt tokens that the session has computed. `prompt` is the tokens of the prompt that are still to be
  // computed.
  TextState(Session::State& session, const GenerateOptions& options, std::span<const Token> prompt = {});
  TextState(const TextState&) = delete;  // not copied, because matcher_ refers to options_
  TextState& operator=(const TextState&) = delete;

  // Checks the options. Error: invalid_argument, an enum of the options has a value that it does not define.
  [[nodiscard]] static Status check(const GenerateOptions& options);

  [[nodiscard]] Status check_goes_on() const;
  // Fills in the piece's text and finish reason, from its token. After an error nothing has changed.
  Status push(Piece& piece);

  [[nodiscard]] const GenerateOptions& options() const noexcept { return options_; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return finish_; }
  // Updates Figures::bytes_per_token. `kv_tokens` is how many tokens' keys and values the last step has read.
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
