// How many states of recurrent layers a sequence may hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tessera/kv/kv_cache.hpp>

namespace tessera::detail {

// At most, with `pages` full ones and no drafts: the live state and the checkpoints, and beside them what a step leaves: the next
// live state, the next checkpoints, and what is offered to others. A draft takes one more as long as it is one.
[[nodiscard]] inline std::uint64_t most_states(const KvLayout& layout, std::uint64_t pages, std::uint64_t checkpoints, bool offers) noexcept {
  const std::uint64_t own = std::min(pages, checkpoints + 1);
  const std::uint64_t offered = offers ? std::min<std::uint64_t>(kMostOffered, pages / layout.state_pages) : 0;
  return own + std::min(pages, own + offered);
}

}  // namespace tessera::detail
