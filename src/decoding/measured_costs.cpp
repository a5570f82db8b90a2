#include "decoding/measured_costs.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

constexpr double kNewest = 0.1;    // weight of the newest, once there are ten
constexpr double kOutlier = 3.0;   // times the mean: a machine that was busy with something else, counted as this much

}  // namespace

void MeasuredCosts::observe(std::size_t width, double seconds) noexcept {
  if (width == 0 || width >= costs_.size() || !(seconds >= 0.0)) return;
  Cost& cost = costs_[width];
  if (cost.times >= 3) seconds = std::min(seconds, kOutlier * cost.seconds);
  ++cost.times;
  cost.seconds += (seconds - cost.seconds) * std::max(1.0 / cost.times, kNewest);
  any_ = true;
}

double MeasuredCosts::at(std::size_t width) const noexcept {
  width = std::min(width, costs_.size() - 1);
  std::size_t below = width, above = width;
  while (below > 0 && costs_[below].times == 0) --below;
  while (above < costs_.size() && costs_[above].times == 0) ++above;
  const double low = costs_[below].seconds;
  if (above == below || above == costs_.size()) return low;
  return low + static_cast<double>(width - below) / static_cast<double>(above - below) * (costs_[above].seconds - low);
}

}  // namespace tessera::detail
