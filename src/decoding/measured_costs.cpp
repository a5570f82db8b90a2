#include <tessera/extend/decoding/measured_costs.hpp>

#include <algorithm>

namespace tessera {
namespace {

// A new time t changes the stored cost c to c + share * (t - c). The share is kFaster if t is below c, and kSlower if t is above c. The
// shares differ because other work of the machine makes some times much too long, but none too short.
constexpr double kFaster = 0.3, kSlower = 0.05;
constexpr double kOutlier = 2.0;  // a time above this multiple of the cost counts as this multiple

}  // namespace

void MeasuredCosts::observe(std::size_t width, double seconds) noexcept {
  if (width == 0 || width >= costs_.size() || !(seconds >= 0.0)) return;
  Cost& cost = costs_[width];
  if (cost.times < sure_) cost.seconds = cost.times++ == 0 ? seconds : std::min(cost.seconds, seconds);
  else if (seconds < cost.seconds) cost.seconds += kFaster * (seconds - cost.seconds);
  else cost.seconds += kSlower * (std::min(seconds, kOutlier * cost.seconds) - cost.seconds);
  if (known(width)) widest_ = std::max(widest_, width);
}

double MeasuredCosts::at(std::size_t width) const noexcept {
  width = std::min(width, widest_);
  std::size_t below = width, above = width;
  while (below > 0 && !known(below)) --below;
  while (above < widest_ && !known(above)) ++above;
  double seconds = costs_[below].seconds;
  if (above != below) {
    seconds += static_cast<double>(width - below) / static_cast<double>(above - below) * (costs_[above].seconds - seconds);
  }
  for (std::size_t wider = width + 1; wider <= widest_; ++wider) {
    if (known(wider)) seconds = std::min(seconds, costs_[wider].seconds);
  }
  return seconds;
}

}  // namespace tessera
