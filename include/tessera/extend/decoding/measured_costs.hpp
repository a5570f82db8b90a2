// Measured seconds by width: of steps of n rows, or of n drafts. Width 0 takes no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

// The costs. Take one for each kind of work that is measured.
//
//   MeasuredCosts costs(64);
//   costs.observe(1, 0.010);
//   costs.observe(8, 0.017);
//   const double seconds = costs.at(4);  // 0.013
class MeasuredCosts {
 public:
  // Learns widths 1 to `most`; a wider one is not learnt, and takes the time of the widest known. A width is known after `sure`
  // measurements, of which the shortest counts, because the first of its kind often takes longer.
  explicit MeasuredCosts(std::size_t most, std::uint32_t sure = 1) : costs_(most + 1), sure_(sure) {}

  void observe(std::size_t width, double seconds) noexcept;
  // Returns the seconds of a width. Between two known widths: on the line through them. Beyond the widest known: its seconds. Never more
  // than a wider one took. 0 if none is known.
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
  std::size_t widest_ = 0;   // the widest known
};

}  // namespace tessera
