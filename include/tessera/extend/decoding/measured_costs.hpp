// Measured times of work, by its width, from which speculation decides how many drafts pay. The width of a step is its number of rows; the
// width of a drafter's work is its number of drafts. Width 0 costs 0 seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

// The measured costs, in seconds, of one kind of work (steps, or making drafts).
//
//   MeasuredCosts costs(64);
//   costs.observe(1, 0.010);
//   costs.observe(8, 0.017);
//   const double seconds = costs.at(4);  // 0.013
class MeasuredCosts {
 public:
  // Makes costs for widths 1 to `most`. Measurements of wider steps are ignored; at() treats such a width like the widest known width. A
  // width is known after `sure` measurements. The cost of a known width begins as the shortest of its first `sure` times, because the first
  // run of a width often takes longer. Each later time moves the cost toward that time.
  explicit MeasuredCosts(std::size_t most, std::uint32_t sure = 1) : costs_(most + 1), sure_(sure) {}

  void observe(std::size_t width, double seconds) noexcept;
  // Returns the seconds of a width. Between two known widths, interpolates linearly. Beyond the widest known width, returns the seconds of
  // that width. Never returns more than the cost of a wider width. Returns 0 if no width is known.
  [[nodiscard]] double at(std::size_t width) const noexcept;
  [[nodiscard]] bool measured() const noexcept { return widest_ > 0; }
  [[nodiscard]] bool measured(std::size_t width) const noexcept { return width < costs_.size() && known(width); }

 private:
  struct Cost {
    double seconds = 0.0;
    std::uint32_t times = 0;  // measurements, up to sure_
  };
  [[nodiscard]] bool known(std::size_t width) const noexcept { return costs_[width].times == sure_; }

  std::vector<Cost> costs_;  // [most + 1]
  std::uint32_t sure_;
  std::size_t widest_ = 0;   // the widest known width
};

}  // namespace tessera
