// Costs that the scheduler has learnt from its steps. Used by the driving thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/scheduler/cost_model.hpp>

#include "scheduler/plan/draft_ledger.hpp"

namespace tessera::detail {

struct Learnt {
  static constexpr std::size_t kMostRows = 256;  // DraftLedger: steps are told apart by their rows up to 256; larger steps count as 256

  explicit Learnt(const CostModel& known) : costs(known) {}

  CostModel costs;
  DraftLedger drafts{kMostRows};
  double file_rate = 1e9;  // bytes a second that are read from the KV file

  void observe_file(std::uint64_t bytes, double seconds) noexcept {
    if (seconds > 0.0 && bytes > 0) file_rate = 0.7 * file_rate + 0.3 * static_cast<double>(bytes) / seconds;
  }
};

}  // namespace tessera::detail
