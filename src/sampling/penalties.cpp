#include "sampling/penalties.hpp"

#include <algorithm>

#include "sampling/range.hpp"

namespace tessera::sampling {

Status Penalties::check() const noexcept {
  TESSERA_TRY_STATUS(detail::require(options.repetition > 0.0f && detail::finite(options.repetition),
                                     "repetition penalty", options.repetition, "a number above 0"));
  TESSERA_TRY_STATUS(
      detail::require(detail::finite(options.frequency), "frequency penalty", options.frequency, "a finite number"));
  return detail::require(detail::finite(options.presence), "presence penalty", options.presence, "a finite number");
}

void Penalties::operator()(Candidates& candidates, const Context& context) const noexcept {
  const auto& [repetition, frequency, presence, last_n] = options;
  if (repetition == 1.0f && frequency == 0.0f && presence == 0.0f) return;
  const auto recent = context.history.last(std::min(last_n, context.history.size()));
  const auto counts = candidates.counts();
  for (const Token token : recent) {
    if (static_cast<std::uint32_t>(token) < counts.size()) ++counts[static_cast<std::uint32_t>(token)];
  }
  for (Candidate& candidate : candidates.items()) {
    const auto token = static_cast<std::uint32_t>(candidate.token);
    if (token >= counts.size() || counts[token] == 0) continue;
    float logit = candidate.logit;
    logit = logit > 0.0f ? logit / repetition : logit * repetition;
    candidate.logit = logit - (static_cast<float>(counts[token]) * frequency + presence);
  }
  for (const Token token : recent) {
    if (static_cast<std::uint32_t>(token) < counts.size()) counts[static_cast<std::uint32_t>(token)] = 0;
  }
}

}  // namespace tessera::sampling
