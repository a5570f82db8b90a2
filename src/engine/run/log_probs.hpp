// Log-probabilities of the model's own distribution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/generation.hpp>

namespace tessera::detail {

// Returns ln sum exp(logits), computed in double and added in ascending order of tokens. A logit minus the result is the token's
// log-probability. Errors: numeric, a NaN, or a largest logit that is infinite.
[[nodiscard]] Result<double> log_sum_exp(std::span<const float> logits) noexcept;

// Writes the n most likely tokens to `top`, the most likely first; of equally likely tokens the lower id comes first.
void top_log_probs(std::span<const float> logits, double log_sum, std::size_t n, std::vector<TokenLogprob>& top);

// Fills the piece's log-probability of its token, and its list of the n most likely tokens.
Status add_log_probs(std::span<const float> logits, std::size_t n, Piece& piece);

}  // namespace tessera::detail
