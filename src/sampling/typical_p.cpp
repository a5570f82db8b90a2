#include "sampling/typical_p.hpp"

#include <algorithm>
#include <bit>

#include "sampling/range.hpp"
#include "sampling/surprise.hpp"

namespace tessera::sampling {

Status TypicalP::check() const noexcept {
  return detail::require(p > 0.0f && p <= 1.0f, "typical-p", p, "above 0 and at most 1");
}

void TypicalP::operator()(Candidates& candidates, const Context&) const noexcept {
  if (p >= 1.0f || !candidates.softmax()) return;
  const detail::Surprise surprise(candidates);
  // For the time of the search a candidate's logit is how typical it is; its own waits in the counts, by token.
  const auto saved = candidates.counts();
  const auto known = [&](const Candidate& c) { return static_cast<std::uint32_t>(c.token) < saved.size(); };
  const auto view = candidates.view();
  if (!std::all_of(view.begin(), view.end(), known)) return;  // a custom stage's mistake, which the draw reports
  for (Candidate& candidate : candidates.items()) {
    saved[static_cast<std::size_t>(candidate.token)] = std::bit_cast<std::uint32_t>(candidate.logit);
    const double distance = surprise(candidate) - surprise.entropy();
    candidate.logit = static_cast<float>(distance < 0.0 ? distance : -distance);
  }
  candidates.keep_mass(static_cast<double>(p), min_keep);
  for (Candidate& candidate : candidates.items()) {
    candidate.logit = std::bit_cast<float>(saved[static_cast<std::size_t>(candidate.token)]);
  }
  std::fill(saved.begin(), saved.end(), 0u);
}

}  // namespace tessera::sampling
