// What a TextStream does, for those inside the library who have one as a member.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/generation.hpp>
#include <tessera/text/detokenizer.hpp>

#include "decoding/stop_matcher.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

// Whether a text that follows the session's tokens, and the prompt's, begins one.
[[nodiscard]] TextStart text_start(const Session::State& session, std::span<const Token> prompt = {});

class TextState {
 public:
  // Takes the figures of the session's prompt over. `prompt`: what is still to be computed of it.
  TextState(Session::State& session, const GenerateOptions& options, std::span<const Token> prompt = {});
  TextState(const TextState&) = delete;  // the matcher looks at the options
  TextState& operator=(const TextState&) = delete;

  // Errors: values that no enum has.
  [[nodiscard]] static Status check(const GenerateOptions& options);

  [[nodiscard]] Status check_goes_on() const;
  // Fills the piece's text and how it finishes, from its token. On error nothing has changed.
  Status push(Piece& piece);

  [[nodiscard]] const GenerateOptions& options() const noexcept { return options_; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return finish_; }
  // `kv_tokens`: of the sequence, that the last token was computed over.
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
  Clock::time_point first_;  // when the first token was there
  FinishReason finish_ = FinishReason::none;
  Figures figures_;
};

}  // namespace tessera::detail
