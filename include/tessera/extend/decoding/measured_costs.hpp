// Seconds by width, as measured: of a step of n rows, or of n drafts. Nothing takes no time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

class MeasuredCosts {
 public:
  // Of widths 1 to `most`; what is wider is not learnt, and taken for as long. A width is known after `sure` times, of which the
  // shortest counts: the first of its kind often takes longer.
  explicit MeasuredCosts(std::size_t most, std::uint32_t sure = 1) : costs_(most + 1), sure_(sure) {}

  void observe(std::size_t width, double seconds) noexcept;
  // Between two widths that are known: on the line through them; beyond the widest: as that. Never more
  // than what is wider took. 0: none has been measured.
  [[nodiscard]] double at(std::size_t width) const noexcept;
  [[nodiscard]] bool measured() const noexcept { return widest_ > 0; }
  [[nodiscard]] bool measured(std::size_t width) const noexcept { return width < costs_.size() && known(width); }

 private:
  struct Cost {
    double seconds = 0.0;
    std::uint32_t times = 0;  // up to sure_
  };
  [[nodiscard]] bool known(std::size_t width) const noexcept { return costs_[width].times == sure_; }

  std::vector<Cost> costs_;  // [most + 1]
  std::uint32_t sure_;
  std::size_t widest_ = 0;   // that is known
};

}  // namespace tessera
