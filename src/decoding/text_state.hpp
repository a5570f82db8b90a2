// The work of a TextStream, for classes of the library that have one as a member.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/generation.hpp>
#include <tessera/session.hpp>
#include <tessera/text/detokenizer.hpp>

#include "decoding/stop_matcher.hpp"

namespace tessera::detail {

// Returns whether text generated after the session's tokens and the prompt begins a new text (so a leading space is dropped).
[[nodiscard]] TextStart text_start(const Session::State& session, std::span<const Token> prompt = {});

class TextState {
 public:
  // Takes over the figures of the session's prompt. `prompt`: tokens of the prompt that are still to be computed.
  TextState(Session::State& session, const GenerateOptions& options, std::span<const Token> prompt = {});
  TextState(const TextState&) = delete;  // matcher_ refers to options_
  TextState& operator=(const TextState&) = delete;

  // Error: invalid_argument, an enum of the options has no valid value.
  [[nodiscard]] static Status check(const GenerateOptions& options);

  [[nodiscard]] Status check_goes_on() const;
  // Fills the piece's text and finish, from its token. After an error nothing has changed.
  Status push(Piece& piece);

  [[nodiscard]] const GenerateOptions& options() const noexcept { return options_; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return finish_; }
  // Updates Figures::bytes_per_token. `kv_tokens`: tokens whose keys and values the last token's step read.
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
  Clock::time_point first_;  // time of the first token
  FinishReason finish_ = FinishReason::none;
  Figures figures_;
};

}  // namespace tessera::detail
