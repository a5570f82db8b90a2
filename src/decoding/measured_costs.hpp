// Seconds by width, as measured: of a step of n rows, or of n drafts. Nothing takes no time.
#pragma once

#include <cstddef>
#include <vector>

namespace tessera::detail {

class MeasuredCosts {
 public:
  explicit MeasuredCosts(std::size_t most) : costs_(most + 1) {}

  void observe(std::size_t width, double seconds) noexcept;
  // Between two widths that are known: on the line through them; beyond the widest: as that. Never more
  // than what is wider took. 0: none has been measured.
  [[nodiscard]] double at(std::size_t width) const noexcept;
  [[nodiscard]] bool measured() const noexcept { return any_; }

 private:
  struct Cost {
    double seconds = 0.0;
    bool known = false;
  };
  std::vector<Cost> costs_;  // [most + 1]
  bool any_ = false;
};

}  // namespace tessera::detail
