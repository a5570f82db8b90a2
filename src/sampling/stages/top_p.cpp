#include "sampling/stages/top_p.hpp"

#include "sampling/range.hpp"

namespace tessera::sampling {

Status TopP::check() const noexcept {
  return detail::require(p > 0.0f && p <= 1.0f, "top-p", p, "above 0 and at most 1");
}

void TopP::operator()(Candidates& candidates, const Context&) const noexcept {
  if (p < 1.0f && candidates.softmax()) candidates.keep_mass(static_cast<double>(p), min_keep);
}

}  // namespace tessera::sampling
