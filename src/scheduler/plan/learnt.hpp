// Costs that the scheduler has learned from its steps. Used only by the driving thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/extend/scheduler/cost_model.hpp>

#include "decoding/draft_economy.hpp"

namespace tessera::detail {

struct Learnt {
  explicit Learnt(const CostModel& known) : costs(known) {}

  CostModel costs;
  // Records for all requests together whether drafts have gained or lost time. Only steps in which every row draws a token are recorded.
  // Steps with 256 rows or more count as equally wide (`widths`). The first 3 steps of each number of rows get no drafts (`plain`): after 3
  // steps CostModel knows the time of this number of rows.
  DraftLedger drafts{{.widths = 256, .plain = 3, .memory = 0.998}};
  double file_rate = 1e9;  // bytes a second that are read from the KV file

  void observe_file(std::uint64_t bytes, double seconds) noexcept {
    if (seconds > 0.0 && bytes > 0) file_rate = 0.7 * file_rate + 0.3 * static_cast<double>(bytes) / seconds;
  }
};

}  // namespace tessera::detail
