// How values are distributed, in fixed memory: buckets whose borders are a factor of 2^(1/8) apart, from a millionth to
// ten thousand (of seconds: a microsecond to three hours). A percentile is right within 5 %; mean, sum and maximum are exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera {

class Histogram {
 public:
  // Values that are not finite are ignored, those outside of the buckets count in the nearest.
  void add(double value, std::uint64_t times = 1) noexcept;
  void merge(const Histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double sum() const noexcept { return sum_; }
  [[nodiscard]] double mean() const noexcept { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] double max() const noexcept { return max_; }
  // The value that a share of `p` in [0, 1] of all do not exceed; 0 of none.
  [[nodiscard]] double percentile(double p) const noexcept;
  // How many are at most `value`, a bucket's border: for metrics that count so.
  [[nodiscard]] std::uint64_t at_most(double value) const noexcept;

 private:
  static constexpr std::size_t kPerOctave = 8, kOctaves = 34;
  static constexpr double kLeast = 1e-6;
  static constexpr std::size_t kBuckets = kPerOctave * kOctaves;
  static std::size_t bucket_of(double value) noexcept;
  static double border(std::size_t bucket) noexcept;  // its upper one

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0.0, max_ = 0.0;
};

}  // namespace tessera
