#include "sampling/draw.hpp"

namespace tessera::sampling {

std::size_t draw(std::span<const Candidate> distribution, double uniform) noexcept {
  double total = 0.0;
  for (const Candidate& candidate : distribution) total += static_cast<double>(candidate.probability);
  const double target = uniform * total;
  double reached = 0.0;
  std::size_t last = 0;  // for a product that rounds up to the total
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    if (!(distribution[i].probability > 0.0f)) continue;
    last = i;
    reached += static_cast<double>(distribution[i].probability);
    if (reached > target) break;
  }
  return last;
}

}  // namespace tessera::sampling
