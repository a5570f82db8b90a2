// The votes that the tokens of a sequence have received from its rows (backend::RowVotes). A token budget that chooses by attention keeps
// the tokens with the most votes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/token_choice.hpp"

namespace tessera::detail {

struct Votes {
  std::vector<std::uint64_t> of_tokens;  // votes for each of the first tokens; later tokens have no votes
  std::vector<std::uint64_t> open;       // votes from the rows of the present run, until the rows are committed
  // Rows before this position have voted, and do not vote again. The position counts removed tokens too.
  std::uint64_t voted = 0;

  // Reserves memory before a run whose rows end at `end`, so that take() does not allocate.
  void begin(std::uint64_t end, bool any_votes) {
    open.clear();
    if (!any_votes) return;
    open.resize(end);
    of_tokens.reserve(end);
  }
  void take(std::uint64_t end) noexcept {
    if (open.empty()) return;
    if (of_tokens.size() < open.size()) of_tokens.resize(open.size());  // begin() has reserved the memory
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
  // Drops the votes for tokens from `position` on, which were truncated. If these tokens are computed again, their rows vote again.
  // `removed` is the number of tokens that edits have removed from the sequence.
  void truncate(std::uint64_t position, std::uint64_t removed) noexcept {
    if (position < of_tokens.size()) of_tokens.resize(position);
    voted = std::min(voted, removed + position);
  }
};

}  // namespace tessera::detail
