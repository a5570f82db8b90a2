// Guesses of a model's MTP head for a session.
#pragma once

#include <span>
#include <stop_token>

#include "engine/states.hpp"

namespace tessera::detail {

// Whether the head can guess for the session: an error if there is none, or if the session is not of the whole model.
[[nodiscard]] Status check_mtp(const Session::State& session);

// Guesses one token after another, each with a logits row [vocab]. Keys and values of the head are left behind the session's
// length, where the step that looks at the drafts writes them again.
class MtpGuesses {
 public:
  MtpGuesses() noexcept = default;  // only to be assigned to
  // Of a session with one pending token, behind some that are computed: as many as `most` guesses follow it.
  static Result<MtpGuesses> begin(Session::State& session, std::size_t most, std::span<float> hidden);
  // Logits of the token that follows `token`: first the pending one, then the draft behind it, and so on.
  Status next(Token token, std::span<float> logits, const std::stop_token& stop);

 private:
  MtpGuesses(Session::State& session, std::span<float> hidden) noexcept
      : session_(&session), position_(session.kv.length()), hidden_(hidden) {}

  Session::State* session_ = nullptr;
  std::uint64_t position_ = 0;  // of the next row
  std::span<float> hidden_;  // [d_model]: what that row sees
};

}  // namespace tessera::detail
