// Log-probabilities of the model's own distribution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/generation.hpp>

namespace tessera::detail {

// Returns ln sum exp(logits), summed in double in ascending order of tokens. A token's log-probability is its logit minus this result.
// Errors: numeric, a logit is NaN, or the largest logit is infinite.
[[nodiscard]] Result<double> log_sum_exp(std::span<const float> logits) noexcept;

// Writes the n most likely tokens to `top`, the most likely first; of equally likely tokens the lower id comes first.
void top_log_probs(std::span<const float> logits, double log_sum, std::size_t n, std::vector<TokenLogprob>& top);

// Sets the log-probability of the piece's token, and the list of the n most likely tokens.
Status add_log_probs(std::span<const float> logits, std::size_t n, Piece& piece);

}  // namespace tessera::detail
