// How much a sequence's rows have attended to each of its tokens (backend::RowVotes), for a budget that chooses by it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/token_choice.hpp"

namespace tessera::detail {

struct Votes {
  std::vector<std::uint64_t> of_tokens;  // of the first ones; those that follow have none
  std::vector<std::uint64_t> open;       // of the present run's rows, until they are the session's
  std::uint64_t voted = 0;               // counting removed tokens: rows before this one do not vote again

  // Before a run of rows that end at `end`, so that nothing fails when they are the session's.
  void begin(std::uint64_t end, bool any_votes) {
    open.clear();
    if (!any_votes) return;
    open.resize(end);
    of_tokens.reserve(end);
  }
  void take(std::uint64_t end) noexcept {
    if (open.empty()) return;
    if (of_tokens.size() < open.size()) of_tokens.resize(open.size());  // there is room
    for (std::size_t i = 0; i < open.size(); ++i) of_tokens[i] += open[i];
    open.clear();
    voted = std::max(voted, end);
  }
  void remove(std::span<const kv::TokenRun> runs) noexcept {
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (run->first >= of_tokens.size()) continue;
      const auto last = std::min<std::uint64_t>(run->last, of_tokens.size());
      of_tokens.erase(of_tokens.begin() + static_cast<std::ptrdiff_t>(run->first), of_tokens.begin() + static_cast<std::ptrdiff_t>(last));
    }
  }
  // Rows from `position` on, and before it `removed` ones, are gone, and may come again.
  void truncate(std::uint64_t position, std::uint64_t removed) noexcept {
    if (position < of_tokens.size()) of_tokens.resize(position);
    voted = std::min(voted, removed + position);
  }
};

}  // namespace tessera::detail
