#include "sampling/stages/penalties.hpp"

#include <algorithm>

#include "sampling/counted.hpp"
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
  const auto& [repetition, frequency, presence, last_n, counted] = options;
  if (repetition == 1.0f && frequency == 0.0f && presence == 0.0f) return;
  const auto recent = last_counted(context, counted, last_n);
  const auto counts = candidates.counts();
  for (const Token token : recent) {
    if (static_cast<std::uint32_t>(token) < counts.size()) ++counts[static_cast<std::uint32_t>(token)];
  }
  const auto tokens = candidates.tokens();
  const auto logits = candidates.change_logits();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::uint32_t count = counts[static_cast<std::uint32_t>(tokens[i])];
    if (count == 0) continue;
    const float logit = logits[i] > 0.0f ? logits[i] / repetition : logits[i] * repetition;
    logits[i] = logit - (static_cast<float>(count) * frequency + presence);
  }
  for (const Token token : recent) {
    if (static_cast<std::uint32_t>(token) < counts.size()) counts[static_cast<std::uint32_t>(token)] = 0;
  }
}

}  // namespace tessera::sampling
