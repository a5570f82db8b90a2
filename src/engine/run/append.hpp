// Tokens to the end of one session, and the logits of some of them.
#pragma once

#include <span>
#include <vector>

#include "engine/states.hpp"

namespace tessera::detail {

// Session::append().
Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options);
// Session::score().
Result<std::vector<float>> score(Session::State& session, std::span<const Token> tokens, const AppendOptions& options);

}  // namespace tessera::detail
