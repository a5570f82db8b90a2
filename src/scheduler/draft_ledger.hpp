// What drafts have gained or lost, all requests together, against the same tokens without them: costs and chances are not exact
// enough to bound that by themselves. Steps in which everybody draws are counted. In some of them nobody has drafts, so that
// it is known what those take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class DraftLedger {
 public:
  explicit DraftLedger(std::size_t most_rows) : turns_(most_rows + 1) {}

  // Whether a step of so many rows may have drafts beside them.
  [[nodiscard]] bool may_draft(std::size_t rows) noexcept;

  struct Step {
    double seconds;  // it took
    double without;  // its tokens would have taken in steps without drafts
  };
  void observe(const Step& step) noexcept;

 private:
  std::vector<std::uint64_t> turns_;  // [rows]: steps that were asked for; more rows count as the most
  double spent_ = 0.0, lost_ = 0.0;   // seconds; older ones count less
};

}  // namespace tessera::detail
