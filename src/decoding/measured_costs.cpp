#include "decoding/measured_costs.hpp"

#include <algorithm>
#include <span>

namespace tessera::detail {
namespace {

// How far a new time moves the cost. What else the machine does makes some times much too long and none too short: so
// the cost is nearer to the shorter ones.
constexpr double kFaster = 0.3, kSlower = 0.05;
constexpr double kOutlier = 2.0;  // times the cost: what is longer counts as this

}  // namespace

void MeasuredCosts::observe(std::size_t width, double seconds) noexcept {
  if (width == 0 || width >= costs_.size() || !(seconds >= 0.0)) return;
  Cost& cost = costs_[width];
  if (!cost.known) cost.seconds = seconds;
  else if (seconds < cost.seconds) cost.seconds += kFaster * (seconds - cost.seconds);
  else cost.seconds += kSlower * (std::min(seconds, kOutlier * cost.seconds) - cost.seconds);
  cost.known = any_ = true;
}

double MeasuredCosts::at(std::size_t width) const noexcept {
  width = std::min(width, costs_.size() - 1);
  std::size_t below = width, above = width;
  while (below > 0 && !costs_[below].known) --below;
  while (above < costs_.size() && !costs_[above].known) ++above;
  double seconds = costs_[below].seconds;
  if (above != below && above < costs_.size()) {
    seconds += static_cast<double>(width - below) / static_cast<double>(above - below) * (costs_[above].seconds - seconds);
  }
  for (const Cost& wider : std::span(costs_).subspan(width + 1)) {
    if (wider.known) seconds = std::min(seconds, wider.seconds);
  }
  return seconds;
}

}  // namespace tessera::detail
