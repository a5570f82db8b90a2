// A histogram of fixed size, for times and other positive values. The border of each bucket is 2^(1/8) times the one before, from 0.000001
// to about 16,000 (in seconds: from a microsecond to four hours). Percentiles are right within 5 %; mean, sum and maximum are exact.
//
//   tessera::Histogram seconds;
//   seconds.add(0.012);
//   seconds.add(0.020, 3);  // three times
//   std::printf("mean %.3f s, 99 of 100 within %.3f s\n", seconds.mean(), seconds.percentile(0.99));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera {

class Histogram {
 public:
  // Counts `value` `times` times. Ignores a value that is not finite. A value outside the range of the buckets is counted in the nearest
  // bucket.
  void add(double value, std::uint64_t times = 1) noexcept;
  void merge(const Histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double sum() const noexcept { return sum_; }
  [[nodiscard]] double mean() const noexcept { return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_); }
  [[nodiscard]] double max() const noexcept { return max_; }
  // Returns the value that a share `p` of all values does not exceed (p = 0.99: 99 of 100 values); 0 if there are no values. p: 0 to 1.
  [[nodiscard]] double percentile(double p) const noexcept;
  // Returns how many values are at most `value`, for metrics with cumulative buckets (Prometheus). Values of the bucket in which `value`
  // lies all count. So the number is exact only if `value` is the upper border of a bucket.
  [[nodiscard]] std::uint64_t at_most(double value) const noexcept;

 private:
  static constexpr std::size_t kPerOctave = 8, kOctaves = 34;
  static constexpr double kLeast = 1e-6;
  static constexpr std::size_t kBuckets = kPerOctave * kOctaves;
  static std::size_t bucket_of(double value) noexcept;
  static double border(std::size_t bucket) noexcept;  // upper border of the bucket

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0.0, max_ = 0.0;
};

}  // namespace tessera
