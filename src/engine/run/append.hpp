// Appends tokens to one session, and returns the logits of some of the tokens.
#pragma once

#include <span>
#include <vector>

#include <tessera/session.hpp>

namespace tessera::detail {

// Implements Session::append(). A token -1 stands for an embedding. `embeddings` has a pointer to d_model values for each -1 among the
// tokens, in order. If `embeddings` is empty, a token -1 is an error.
Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options,
                      std::span<const float* const> embeddings = {});
// Implements Session::score().
Result<std::vector<float>> score(Session::State& session, std::span<const Token> tokens, const AppendOptions& options);

}  // namespace tessera::detail
