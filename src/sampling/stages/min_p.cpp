#include "sampling/stages/min_p.hpp"

#include <algorithm>

#include "core/math.hpp"
#include "sampling/range.hpp"

namespace tessera::sampling {

Status MinP::check() const noexcept {
  return detail::require(p >= 0.0f && p <= 1.0f, "min-p", p, "at least 0 and at most 1");
}

void MinP::operator()(Candidates& candidates, const Context&) const noexcept {
  if (p == 0.0f) return;
  const float threshold =
      static_cast<float>(static_cast<double>(candidates.best().logit) + math::log(static_cast<double>(p)));
  const auto logits = candidates.logits();
  const auto removed = std::count_if(logits.begin(), logits.end(), [&](float logit) { return logit < threshold; });
  if (logits.size() - static_cast<std::size_t>(removed) < min_keep) return candidates.keep_best(min_keep);
  candidates.keep_from(static_cast<double>(threshold));
}

}  // namespace tessera::sampling
