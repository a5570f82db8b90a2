#include <tessera/unstable/decoding/speculation_estimate.hpp>

#include <cmath>

#include "core/error.hpp"

namespace tessera {
namespace {

constexpr std::uint32_t kMostEstimated = 64;

double tokens_of_cycle(double acceptance, std::uint32_t drafts) noexcept {
  double tokens = 1.0, chance = 1.0;
  for (std::uint32_t i = 0; i < drafts; ++i) tokens += chance *= acceptance;
  return tokens;
}

bool is_time(double seconds) noexcept { return std::isfinite(seconds) && seconds >= 0.0; }

}  // namespace

Result<SpeculationEstimate> estimate_speculation(const SpeculationCosts& costs) noexcept {
  const double verify = costs.verify_seconds.value_or(costs.target_seconds);
  if (!is_time(costs.target_seconds) || costs.target_seconds == 0.0 || !is_time(costs.draft_seconds) || !is_time(verify)) {
    return detail::make_error(ErrorCode::invalid_argument, "seconds of {} a step, {} a draft and {} a step with drafts; give numbers that are not negative",
                              costs.target_seconds, costs.draft_seconds, verify);
  }
  if (!(costs.acceptance >= 0.0 && costs.acceptance <= 1.0)) {
    return detail::make_error(ErrorCode::invalid_argument, "an acceptance of {}; it is a share from 0 to 1", costs.acceptance);
  }
  if (costs.drafts > kMostEstimated) {
    return detail::make_error(ErrorCode::invalid_argument, "{} drafts; choose at most {}", costs.drafts, kMostEstimated);
  }
  SpeculationEstimate estimate;
  estimate.tokens = tokens_of_cycle(costs.acceptance, costs.drafts);
  estimate.cycle_seconds = costs.drafts * costs.draft_seconds + verify;
  estimate.token_seconds = estimate.cycle_seconds / estimate.tokens;
  estimate.speedup = costs.target_seconds * estimate.tokens / estimate.cycle_seconds;
  // The number of tokens that a cycle must produce, so that the time for each token is the same as without drafts.
  const double needed = estimate.cycle_seconds / costs.target_seconds;
  if (needed > tokens_of_cycle(1.0, costs.drafts)) return estimate;
  double low = 0.0, high = 1.0;  // bisection: the expected tokens of a cycle grow with the acceptance rate
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (tokens_of_cycle(middle, costs.drafts) < needed ? low : high) = middle;
  }
  estimate.break_even = high;
  return estimate;
}

}  // namespace tessera
