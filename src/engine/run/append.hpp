// Appends tokens to one session, and returns the logits of some of the tokens.
#pragma once

#include <span>
#include <vector>

#include <tessera/session.hpp>

namespace tessera::detail {

// Implements Session::append(). `embeddings` has a pointer [d_model] for each -1 among the tokens, in order. If `embeddings` is empty, -1
// is an error.
Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options,
                      std::span<const float* const> embeddings = {});
// Implements Session::score().
Result<std::vector<float>> score(Session::State& session, std::span<const Token> tokens, const AppendOptions& options);

}  // namespace tessera::detail
