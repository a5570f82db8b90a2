// Has the model's draft heads guess the tokens after a session's last one. The keys and values of guesses are written to positions behind
// the session's length. The step that verifies the drafts writes these positions again.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include <tessera/session.hpp>

namespace tessera::detail {

// Returns the hidden state after the session's last computed token  [d_model]. Empty: the engine has no draft heads, or the session is not
// of the whole model, has no computed tokens, or is suspended.
[[nodiscard]] std::span<const float> hidden_behind(const Session::State& session) noexcept;

// Makes room for `most` guesses behind the session's pending token. Errors: invalid_state, the heads cannot guess for the session; those of
// KvCache::reserve().
Status reserve_guesses(Session::State& session, std::size_t most);

// Writes the logits [vocab] of the token behind `token`, and replaces `hidden`, the hidden state before `token`, by the one for the next
// guess. `ahead`: the number of guesses before this one. The first guess's `token` is the session's pending token. Precondition:
// reserve_guesses() made room.
Status guess(Session::State& session, std::size_t ahead, Token token, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop);

}  // namespace tessera::detail
