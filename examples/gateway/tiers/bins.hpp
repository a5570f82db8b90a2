// Counts of values between fixed borders, for /metrics.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace gateway {

class Bins {
 public:
  explicit Bins(std::vector<double> borders) : borders_(std::move(borders)), counts_(borders_.size() + 1) {}
  void add(double value) {
    ++counts_[static_cast<std::size_t>(std::ranges::lower_bound(borders_, value) - borders_.begin())];
    sum_ += value;
    ++count_;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double sum() const noexcept { return sum_; }
  // Writes a histogram in Prometheus' text format. A value that equals a bucket's upper border counts in this bucket.
  [[nodiscard]] std::string exposition(std::string_view name, std::string_view help) const {
    std::string out = fmt::format("# HELP {} {}\n# TYPE {} histogram\n", name, help, name);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < borders_.size(); ++i) {
      below += counts_[i];
      out += fmt::format("{}_bucket{{le=\"{:g}\"}} {}\n", name, borders_[i], below);
    }
    return out + fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, count_, name, sum_, name, count_);
  }

  // Borders for similarities: 0.05 apart, from 0.9 on 0.01 apart.
  [[nodiscard]] static std::vector<double> similarities() {
    std::vector<double> borders;
    for (int i = 0; i < 18; ++i) borders.push_back(i * 0.05);
    for (int i = 90; i <= 100; ++i) borders.push_back(i * 0.01);
    return borders;
  }

 private:
  std::vector<double> borders_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace gateway
