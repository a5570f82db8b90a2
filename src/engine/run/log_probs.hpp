// Log-probabilities of the model's own distribution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/generation.hpp>

namespace tessera::detail {

// ln sum exp(logits), in double, ascending: what turns a logit into a log-probability. Errors: a NaN, or all -inf.
[[nodiscard]] Result<double> log_sum_exp(std::span<const float> logits) noexcept;

// The n most likely tokens, most likely first, the lower id first among equals.
void top_log_probs(std::span<const float> logits, double log_sum, std::size_t n, std::vector<TokenLogprob>& top);

// What a piece says of its token, which stands in it: its own log-probability, and the n most likely ones.
Status add_log_probs(std::span<const float> logits, std::size_t n, Piece& piece);

}  // namespace tessera::detail
