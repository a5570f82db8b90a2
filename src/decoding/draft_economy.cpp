#include "decoding/draft_economy.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

constexpr std::uint64_t kPlainAgain = 48;  // after the first steps, one step in 48 of each width has no drafts
constexpr double kMayLose =
    0.01;  // share of the time that drafts may lose; the first step with drafts may lose more

}  // namespace

bool DraftLedger::can_lose(double seconds) const noexcept { return lost_ + seconds <= kMayLose * spent_; }

bool DraftLedger::may_draft(std::size_t rows) noexcept {
  const std::uint64_t turn = turns_[std::min(rows, turns_.size() - 1)]++;
  return turn >= rules_.plain && turn % kPlainAgain != 0 && can_lose(0.0);
}

void DraftLedger::observe(const StepTimes& step) noexcept {
  spent_ = rules_.memory * spent_ + step.seconds;
  lost_ = rules_.memory * lost_ + step.seconds - step.without;
}

}  // namespace tessera::detail
