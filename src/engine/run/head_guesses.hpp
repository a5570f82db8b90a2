// Lets the model's draft heads guess the tokens after a session's last token. The keys and values of guesses are written to positions after
// the session's end. The step that verifies the drafts overwrites these positions.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include <tessera/session.hpp>

namespace tessera::detail {

// Returns the hidden state after the session's last computed token  [d_model]. Empty if the engine has no draft heads, or if the session
// computes only a range of layers, has no computed tokens, or is suspended.
[[nodiscard]] std::span<const float> hidden_behind(const Session::State& session) noexcept;

// Reserves `most` positions after the session's pending token. Errors: invalid_state, the heads cannot guess for this session; errors of
// KvCache::reserve().
Status reserve_guesses(Session::State& session, std::size_t most);

// Writes the logits [vocab] of the token after `token`. Replaces `hidden`, the hidden state before `token`, by the hidden state for the
// next guess. `ahead`: number of earlier guesses. In the first guess `token` is the session's pending token. Precondition:
// reserve_guesses() has succeeded.
Status guess(Session::State& session, std::size_t ahead, Token token, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop);

}  // namespace tessera::detail
