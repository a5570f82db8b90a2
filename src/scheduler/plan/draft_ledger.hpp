// Limits the time that drafts may lose. Adds up, over all requests, how much longer or shorter steps took than the same tokens would have
// taken without drafts. (Predicted costs and chances alone are not exact enough.) Only steps in which every row draws a token are counted.
// Some steps get no drafts, so that the time of a step without drafts is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class DraftLedger {
 public:
  explicit DraftLedger(std::size_t most_rows) : turns_(most_rows + 1) {}

  // Returns whether a step of `rows` rows may have drafts as well.
  [[nodiscard]] bool may_draft(std::size_t rows) noexcept;

  struct Step {
    double seconds;  // the time that the step took
    double without;  // the time that its tokens would have taken without drafts
  };
  void observe(const Step& step) noexcept;

 private:
  std::vector<std::uint64_t> turns_;  // [rows]: calls of may_draft() for this number of rows; the last entry counts all larger steps
  double spent_ = 0.0, lost_ = 0.0;   // seconds of counted steps; seconds that drafts have lost; older steps count less
};

}  // namespace tessera::detail
