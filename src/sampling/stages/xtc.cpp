#include "sampling/stages/xtc.hpp"

#include <optional>

#include "sampling/range.hpp"

namespace tessera::sampling {

Status Xtc::check() const noexcept {
  TESSERA_TRY_STATUS(detail::require(options.probability >= 0.0f && options.probability <= 1.0f, "XTC probability",
                                     options.probability, "at least 0 and at most 1"));
  return detail::require(options.threshold > 0.0f && options.threshold <= 1.0f, "XTC threshold", options.threshold,
                         "above 0 and at most 1");
}

void Xtc::operator()(Candidates& candidates, const Context& context) const noexcept {
  if (options.threshold > 0.5f || context.uniform(0) >= static_cast<double>(options.probability)) return;
  if (!candidates.softmax()) return;
  std::optional<Candidate> least;  // the worst candidate that reaches the threshold
  std::size_t reach = 0;
  for (const Candidate candidate : candidates.view()) {
    if (candidate.probability < options.threshold) continue;
    ++reach;
    if (!least || candidate.logit < least->logit ||
        (candidate.logit == least->logit && candidate.token > least->token)) {
      least = candidate;
    }
  }
  if (reach < 2 || candidates.size() - (reach - 1) < options.min_keep) return;
  const Token spared = least->token;
  candidates.remove_if([&](const Candidate& candidate) {
    return candidate.probability >= options.threshold && candidate.token != spared;
  });
}

}  // namespace tessera::sampling
