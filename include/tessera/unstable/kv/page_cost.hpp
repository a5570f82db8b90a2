// Counts the pages and bytes that a sequence's keys, values and states take. Plans, batches, the scheduler and tools ask here, so that they
// count alike.
//
//   const tessera::PageCost cost{.page_tokens = 32, .groups = {{.page_bytes = 65536}}};
//   cost.bytes(100);  // 4 pages: 262,144
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/kv/kv_cache.hpp>

namespace tessera {

struct PageCost {
  struct Group {
    std::uint64_t page_bytes = 0;
    std::uint64_t window = 0;  // tokens of the sliding window; 0: all tokens are kept
    KvGroupKind kind = KvGroupKind::keys_values;
  };
  struct Growth {
    std::uint64_t pages = 0;  // pages of every group with keys and values count as one; each state counts
    std::uint64_t bytes = 0;
  };

  std::uint32_t page_tokens = 32;
  std::vector<Group> groups;
  std::uint32_t checkpoints = kDefaultCheckpoints;  // states of recurrent layers that a sequence keeps (KvCacheOptions)
  std::uint32_t state_pages = 0;                    // pages between two states for other sequences; 0: they get none

  // `offers`: other sequences get states of recurrent layers. May throw bad_alloc.
  [[nodiscard]] static PageCost of(const KvLayout& layout, std::uint32_t checkpoints, bool offers);

  // Returns the pages of each group that `tokens` tokens fill.
  [[nodiscard]] std::uint64_t pages(std::uint64_t tokens) const noexcept { return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0); }
  // Returns the pages of a group that a sequence of `tokens` tokens holds at most, with the token of the next step. A window begins within a
  // page, and the cache keeps one page more behind it.
  [[nodiscard]] std::uint64_t pages(const Group& group, std::uint64_t tokens) const noexcept;
  // Returns the pages of a group that a sequence of `tokens` tokens holds at most, if a call may append any number of them: a window gives
  // pages back only at the end of a call, and a call offers states.
  [[nodiscard]] std::uint64_t pages_at_once(const Group& group, std::uint64_t tokens) const noexcept;

  // Returns the bytes of a sequence of `tokens` tokens: pages() of all groups.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t tokens) const noexcept;
  // Returns the bytes of a sequence whose windows give no pages back.
  [[nodiscard]] std::uint64_t bytes_of_all(std::uint64_t tokens) const noexcept { return pages(tokens) * next_bytes(); }
  // Returns the part of bytes() that is in groups with a window.
  [[nodiscard]] std::uint64_t window_bytes(std::uint64_t tokens) const noexcept;
  // Returns the bytes of one page in each group: the most that a sequence takes next.
  [[nodiscard]] std::uint64_t next_bytes() const noexcept;
  // Returns what a sequence of `length` tokens takes at most to become `end` tokens long. `copies`: pages of each group that it copies
  // before it writes.
  [[nodiscard]] Growth growth(std::uint64_t length, std::uint64_t end, std::uint64_t copies) const noexcept;
};

}  // namespace tessera
