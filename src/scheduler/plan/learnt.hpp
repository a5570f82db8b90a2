// Costs that the scheduler has learnt from its steps. Only the driving thread uses them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/scheduler/cost_model.hpp>

#include "scheduler/plan/draft_ledger.hpp"

namespace tessera::detail {

struct Learnt {
  static constexpr std::size_t kMostRows = 256;  // for DraftLedger, which treats all steps with more rows than this as one width

  explicit Learnt(const CostModel& known) : costs(known) {}

  CostModel costs;
  DraftLedger drafts{kMostRows};
  double file_rate = 1e9;  // bytes a second at which pages are read from the KV file

  void observe_file(std::uint64_t bytes, double seconds) noexcept {
    if (seconds > 0.0 && bytes > 0) file_rate = 0.7 * file_rate + 0.3 * static_cast<double>(bytes) / seconds;
  }
};

}  // namespace tessera::detail
