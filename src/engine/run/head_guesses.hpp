// Lets the model's draft heads guess tokens after a session's last token, which then serve as drafts (speculation). The keys and values
// of guesses are written to positions after the session's end, and do not belong to the session. The step that verifies the drafts
// overwrites these positions.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include <tessera/session.hpp>

namespace tessera::detail {

// Returns the hidden state after the session's last computed token [d_model], from which the first guess begins. Returns an empty span if
// there is none: the engine has no draft heads, or the session computes only a range of layers, has no computed tokens, or is suspended.
[[nodiscard]] std::span<const float> hidden_behind(const Session::State& session) noexcept;

// Reserves `most` positions from the session's pending token on, for the keys and values of guesses. Precondition of the session: computed
// tokens, then exactly one pending token. Errors: invalid_state, the engine has no draft heads, the session has other tokens, or it
// computes only a range of layers; errors of KvCache::reserve().
Status reserve_guesses(Session::State& session, std::size_t most);

// Computes one guess: writes the logits [vocab] of the token that follows `token`. `hidden` [d_model] is the hidden state of the token
// before `token`; guess() replaces it by the hidden state that the next guess needs. `ahead` is the number of guesses before this one. In
// the first guess (ahead = 0) `token` is the session's pending token. In a later guess `token` is the token that the caller chose by the
// logits of the previous guess.
// Precondition: reserve_guesses() has succeeded.
Status guess(Session::State& session, std::size_t ahead, Token token, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop);

}  // namespace tessera::detail
