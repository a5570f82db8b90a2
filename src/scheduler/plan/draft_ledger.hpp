// Limits the time that drafts may lose. Over all requests it adds up how much longer (or shorter) steps with drafts took than the same
// tokens would have taken without. It is needed because predicted costs and acceptance rates alone are not exact enough. Only steps in
// which every row draws a token are counted. Some steps get no drafts, so that the time of a step without drafts is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class DraftLedger {
 public:
  explicit DraftLedger(std::size_t most_rows) : turns_(most_rows + 1) {}

  // Returns whether the next step, which has `rows` rows without drafts, may have drafts as well.
  [[nodiscard]] bool may_draft(std::size_t rows) noexcept;

  struct Step {
    double seconds;  // time that the step took
    double without;  // time that the same number of tokens would have taken without drafts
  };
  void observe(const Step& step) noexcept;

 private:
  // [rows]: how often may_draft() was called for this number of rows; all larger steps share the last entry.
  std::vector<std::uint64_t> turns_;
  double spent_ = 0.0, lost_ = 0.0;   // seconds of counted steps, and how many of them drafts have lost; older steps weigh less
};

}  // namespace tessera::detail
