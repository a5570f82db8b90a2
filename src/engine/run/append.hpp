// Appends tokens to one session, and gives the logits of some of them.
#pragma once

#include <span>
#include <vector>

#include <tessera/session.hpp>

namespace tessera::detail {

// Implements Session::append().
Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options);
// Implements Session::score().
Result<std::vector<float>> score(Session::State& session, std::span<const Token> tokens, const AppendOptions& options);

}  // namespace tessera::detail
