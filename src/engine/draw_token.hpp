// The next token of a session, drawn by the backend: no logits come to the host.
#pragma once

#include <stop_token>

#include <tessera/sampling/recipe.hpp>

#include "engine/states.hpp"

namespace tessera::detail {

// Whether draw_token() may be called now: the backend samples, and tokens are pending, the last of which the new one
// follows. Not at the step that cuts a streaming session: were it undone after its cut, the last token would be
// computed and its logits unknown.
[[nodiscard]] bool draws_on_backend(const Session::State& session) noexcept;

// Computes the pending tokens and draws the one that follows, which is not added. On success the session's logits are
// not known; on error it is as it was.
Result<Token> draw_token(Session::State& session, const sampling::Recipe& recipe, const std::stop_token& stop);

}  // namespace tessera::detail
