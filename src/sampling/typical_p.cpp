#include <tessera/sampling/typical_p.hpp>

#include <algorithm>

#include "sampling/range.hpp"
#include "sampling/surprise.hpp"

namespace tessera::sampling {

Status TypicalP::check() const noexcept {
  return detail::require(p > 0.0f && p <= 1.0f, "typical-p", p, "above 0 and at most 1");
}

void TypicalP::operator()(Candidates& candidates, const Context&) const noexcept {
  if (p >= 1.0f || !candidates.softmax()) return;
  const detail::Surprise surprise(candidates);
  // For the time of the search a candidate's logit is how typical it is, and its own logit waits in `probability`.
  for (Candidate& candidate : candidates.items()) {
    const double distance = surprise(candidate) - surprise.entropy();
    candidate.probability = candidate.logit;
    candidate.logit = static_cast<float>(distance < 0.0 ? distance : -distance);
  }
  std::size_t sorted = std::min(std::max<std::size_t>(min_keep, 64), candidates.size());
  std::size_t kept = 0;
  double reached = 0.0;
  while (true) {
    candidates.sort_best(sorted);
    const auto view = candidates.view();
    while (kept < sorted && (reached < static_cast<double>(p) || kept < min_keep)) {
      reached += math::exp(-surprise(Candidate{view[kept].token, view[kept].probability, 0.0f}));
      ++kept;
    }
    if (kept < sorted || sorted == candidates.size()) break;
    sorted = std::min(sorted * 8, candidates.size());
  }
  candidates.keep(kept);
  for (Candidate& candidate : candidates.items()) candidate.logit = candidate.probability;
}

}  // namespace tessera::sampling
