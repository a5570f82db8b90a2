#include "scheduler/plan/draft_ledger.hpp"

#include <algorithm>

namespace tessera::detail {
namespace {

// Steps without drafts, counted for each width: the first kLedgerPlainFirst, and then one in kLedgerPlainAgain.
constexpr std::uint64_t kLedgerPlainFirst = 3, kLedgerPlainAgain = 48;
constexpr double kLedgerMayLose = 0.01;                           // fraction of the time that drafts may cost more than they gain
constexpr double kLedgerMemory = 0.998;                           // weight of all earlier steps is multiplied by this at each step

}  // namespace

bool DraftLedger::may_draft(std::size_t rows) noexcept {
  const std::uint64_t turn = turns_[std::min(rows, turns_.size() - 1)]++;
  if (turn < kLedgerPlainFirst || turn % kLedgerPlainAgain == 0) return false;
  return lost_ <= kLedgerMayLose * spent_;
}

void DraftLedger::observe(const Step& step) noexcept {
  spent_ = kLedgerMemory * spent_ + step.seconds;
  lost_ = kLedgerMemory * lost_ + step.seconds - step.without;
}

}  // namespace tessera::detail
