// Tokens to the end of a session, and the logits of some of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/run_batch.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

// Makes `rows` the pending tokens, if there are any, then `tokens`; the index of the first of these. Nothing is wanted
// yet.
[[nodiscard]] std::size_t make_rows(Session::State& session, std::span<const Token> tokens, std::vector<RunRow>& rows);

// Session::append(). `cuts` is RunOptions::cuts.
Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options, bool cuts = true);

}  // namespace tessera::detail
