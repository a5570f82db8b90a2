#include "sampling/stages/typical_p.hpp"

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
  // keep_mass() keeps the candidates with the highest logits. So each logit is replaced by a measure of how typical the candidate is, and
  // put back after keep_mass(). Meanwhile the real logits are stored in the stages' scratch memory (Candidates::counts()), which has a cell
  // for each token.
  const auto saved = candidates.counts();
  auto logits = candidates.change_logits();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    saved[static_cast<std::size_t>(candidates.tokens()[i])] = std::bit_cast<std::uint32_t>(logits[i]);
    const double distance = surprise(logits[i]) - surprise.entropy();
    logits[i] = static_cast<float>(distance < 0.0 ? distance : -distance);
  }
  candidates.keep_mass(static_cast<double>(p), min_keep);
  logits = candidates.change_logits();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::bit_cast<float>(saved[static_cast<std::size_t>(candidates.tokens()[i])]);
  }
  std::fill(saved.begin(), saved.end(), 0u);
}

}  // namespace tessera::sampling
