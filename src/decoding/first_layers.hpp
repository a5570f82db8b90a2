// Logits of a model's first layers (early exit), for drafts (DraftTarget::guess_by_layers()) and for EarlyExit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/session.hpp>

namespace tessera::detail {

// Guesses the next token with only the model's first `layers` layers: computes rows in these layers, and writes the logits of the last row
// to `logits`  [vocab]. If `ahead` is 0: the rows are the session's pending tokens. Otherwise: there is one row, the token `draft`, which is
// the ahead-th draft after the pending tokens. The session does not grow: keys and values of the rows stay after its end, in reserved pages.
Status guess_by_layers(Session::State& session, std::uint32_t layers, std::size_t ahead, Token draft, std::span<float> logits,
                       const std::stop_token& stop);

}  // namespace tessera::detail
