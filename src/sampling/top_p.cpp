#include <tessera/sampling/top_p.hpp>

#include <algorithm>

#include "sampling/range.hpp"

namespace tessera::sampling {

Status TopP::check() const noexcept {
  return detail::require(p > 0.0f && p <= 1.0f, "top-p", p, "above 0 and at most 1");
}

void TopP::operator()(Candidates& candidates, const Context&) const noexcept {
  if (p >= 1.0f || !candidates.softmax()) return;
  // The nucleus is mostly small: sort a few of the best, and more only while they do not reach p.
  std::size_t sorted = std::min(std::max<std::size_t>(min_keep, 64), candidates.size());
  std::size_t i = 0;
  double reached = 0.0;
  while (true) {
    candidates.sort_best(sorted);
    const auto view = candidates.view();
    for (; i < sorted; ++i) {
      reached += static_cast<double>(view[i].probability);
      if (reached >= static_cast<double>(p)) return candidates.keep(std::max({i + 1, min_keep, std::size_t{1}}));
    }
    if (sorted == candidates.size()) return;
    sorted = std::min(sorted * 8, candidates.size());
  }
}

}  // namespace tessera::sampling
