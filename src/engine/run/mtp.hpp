// Drafts tokens for a session by the model's MTP head.
#pragma once

#include <span>
#include <stop_token>

#include "engine/states.hpp"

namespace tessera::detail {

// Returns an error if the head cannot guess for the session: the engine has no head, or the session is not of the whole model.
[[nodiscard]] Status check_mtp(const Session::State& session);

// Guesses one token after another. The head's keys and values stay behind the session's length, where the step that verifies the drafts
// writes them again.
class MtpGuesses {
 public:
  MtpGuesses() noexcept = default;  // only to be assigned to
  // Begins up to `most` guesses behind the session's pending token. Precondition: the session has computed tokens and one pending token.
  static Result<MtpGuesses> begin(Session::State& session, std::size_t most, std::span<float> hidden);
  // Writes the logits [vocab] of the token behind `token`. Call it first with the pending token, then with each draft.
  Status next(Token token, std::span<float> logits, const std::stop_token& stop);

 private:
  MtpGuesses(Session::State& session, std::span<float> hidden) noexcept
      : session_(&session), position_(session.kv.length()), hidden_(hidden) {}

  Session::State* session_ = nullptr;
  std::uint64_t position_ = 0;  // position of the next row
  std::span<float> hidden_;  // [d_model], the hidden state before the next row
};

}  // namespace tessera::detail
