// Counts the pages and bytes that a sequence needs for its keys, values and states (of recurrent layers). Plans, batches, the scheduler and
// tools all count with PageCost, so that their numbers agree.
//
//   const tessera::PageCost cost{.page_tokens = 32, .groups = {{.page_bytes = 65536}}};
//   const std::uint64_t bytes = cost.bytes(100);  // 4 pages: 262,144
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
    std::uint64_t pages = 0;  // page i of all groups with keys and values together counts as one page; each state counts as a page
    std::uint64_t bytes = 0;
  };

  std::uint32_t page_tokens = 32;
  std::vector<Group> groups;
  std::uint32_t checkpoints = kDefaultCheckpoints;  // states of recurrent layers that a sequence keeps (KvCacheOptions)
  std::uint32_t state_pages = 0;                    // pages between two states that other sequences may find; 0: no states for others

  // Makes the PageCost for the groups of a layout. `offers`: true if states of recurrent layers are kept so that other sequences can find
  // them. May throw bad_alloc.
  [[nodiscard]] static PageCost of(const KvLayout& layout, std::uint32_t checkpoints, bool offers);

  // Returns how many pages of one group `tokens` tokens fill, if no window frees pages.
  [[nodiscard]] std::uint64_t pages(std::uint64_t tokens) const noexcept { return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0); }
  // Returns how many pages of one group a sequence of `tokens` tokens holds at most, including the page for the token of the next step. In
  // a group with a window, these are the pages that window - 1 tokens fill, and two more: one because the window may begin within a page, and
  // one because the cache keeps one more page before the window. They are never more than the pages that all tokens fill.
  [[nodiscard]] std::uint64_t pages(const Group& group, std::uint64_t tokens) const noexcept;
  // Returns how many pages of one group a sequence of `tokens` tokens holds at most, if one call may append any number of them. This may be
  // more than pages(), for two reasons. In a group with a window, pages are freed only at the end of a call. In the group of the recurrent
  // layers, a long call also keeps states that it will offer to other sequences.
  [[nodiscard]] std::uint64_t pages_at_once(const Group& group, std::uint64_t tokens) const noexcept;

  // Returns the bytes that a sequence of `tokens` tokens holds at most: the sum of pages() over all groups, in bytes.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t tokens) const noexcept;
  // Returns the bytes of a sequence of `tokens` tokens, if no window frees pages.
  [[nodiscard]] std::uint64_t bytes_of_all(std::uint64_t tokens) const noexcept { return pages(tokens) * next_bytes(); }
  // Returns the share of bytes() that groups with a window take.
  [[nodiscard]] std::uint64_t window_bytes(std::uint64_t tokens) const noexcept;
  // Returns the bytes of one page of each group. A sequence takes at most this much when it grows by one token.
  [[nodiscard]] std::uint64_t next_bytes() const noexcept;
  // Returns the pages and bytes that a sequence of `length` tokens needs at most to grow to `end` tokens. `copies`: number of shared pages
  // in each group that have to be copied first.
  [[nodiscard]] Growth growth(std::uint64_t length, std::uint64_t end, std::uint64_t copies) const noexcept;
};

}  // namespace tessera
