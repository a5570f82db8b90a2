// How many states of recurrent layers a sequence may hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tessera/kv/kv_cache.hpp>

namespace tessera::detail {

// At most, with `pages` full ones and no drafts: the live state and the checkpoints, and beside them what a step leaves: the next
// live state, the next checkpoints, and what is offered to others before those. A draft takes one more as long as it is one.
[[nodiscard]] inline std::uint64_t most_states(const KvLayout& layout, std::uint64_t pages, std::uint64_t checkpoints, bool offers) noexcept {
  const std::uint64_t own = std::min(pages, checkpoints + 1);
  const std::uint64_t between = pages - std::min(pages, 2 * checkpoints);  // pages of no checkpoint, before the step or behind it
  const std::uint64_t offered = offers ? std::min<std::uint64_t>(kMostOffered, (between + layout.state_pages - 1) / layout.state_pages) : 0;
  return std::min(own + std::min(pages, own + offered), pages + 1);  // one a page, and the live one that the step replaces
}

}  // namespace tessera::detail
