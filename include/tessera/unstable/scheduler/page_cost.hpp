// Computes the bytes of pages that a sequence's keys and values take: the arithmetic of the KV cache's groups, for plans.
//
//   const tessera::PageCost cost{.page_tokens = 32, .groups = {{.page_bytes = 65536}}};
//   cost.bytes(100);  // 4 pages: 262,144
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera {

struct PageCost {
  struct Group {
    std::uint64_t page_bytes = 0;
    std::uint64_t window = 0;  // tokens of the sliding window; 0: all tokens are kept
  };
  std::uint32_t page_tokens = 32;
  std::vector<Group> groups;

  // Returns the bytes of a sequence of `tokens` tokens. A window begins within a page, and the cache keeps one page more behind it.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t tokens) const noexcept {
    std::uint64_t sum = 0;
    for (const Group& group : groups) {
      std::uint64_t pages = (tokens + page_tokens - 1) / page_tokens;
      if (group.window != 0) pages = std::min(pages, (group.window + page_tokens - 1) / page_tokens + 2);
      sum += pages * group.page_bytes;
    }
    return sum;
  }
  // Returns the bytes of a sequence whose windows give no pages back.
  [[nodiscard]] std::uint64_t bytes_of_all(std::uint64_t tokens) const noexcept {
    return (tokens + page_tokens - 1) / page_tokens * next_bytes();
  }
  // Returns the bytes of one page in each group: the most that a sequence takes next.
  [[nodiscard]] std::uint64_t next_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const Group& group : groups) sum += group.page_bytes;
    return sum;
  }
};

}  // namespace tessera
