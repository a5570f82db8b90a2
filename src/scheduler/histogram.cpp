#include <tessera/extend/scheduler/histogram.hpp>

#include <algorithm>
#include <cmath>

namespace tessera {

std::size_t Histogram::bucket_of(double value) noexcept {
  if (!(value > kLeast)) return 0;
  const double place = std::ceil(std::log2(value / kLeast) * kPerOctave);
  return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kBuckets - 1)));
}

double Histogram::border(std::size_t bucket) noexcept {
  return kLeast * std::exp2(static_cast<double>(bucket) / kPerOctave);
}

void Histogram::add(double value, std::uint64_t times) noexcept {
  if (!std::isfinite(value) || times == 0) return;
  max_ = count_ == 0 ? value : std::max(max_, value);
  counts_[bucket_of(value)] += times;
  count_ += times;
  sum_ += value * static_cast<double>(times);
}

void Histogram::merge(const Histogram& other) noexcept {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
}

double Histogram::percentile(double p) const noexcept {
  if (count_ == 0) return 0.0;
  const double wanted = std::clamp(p, 0.0, 1.0) * static_cast<double>(count_);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    before += counts_[i];
    // Return the middle of the bucket on the logarithmic scale.
    if (counts_[i] > 0 && static_cast<double>(before) >= wanted) {
      return std::min(border(i) * std::exp2(-0.5 / kPerOctave), max_);
    }
  }
  return max_;
}

std::uint64_t Histogram::at_most(double value) const noexcept {
  const std::size_t last = bucket_of(value);
  std::uint64_t n = 0;
  for (std::size_t i = 0; i <= last; ++i) n += counts_[i];
  return n;
}

}  // namespace tessera
