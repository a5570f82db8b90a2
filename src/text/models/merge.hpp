// The merge loop of BPE, which byte_bpe.hpp, raw_bpe.hpp, spm_bpe.hpp and word_bpe.hpp share. A text is a sequence of symbols (at first
// single bytes or characters). The loop joins the two neighbouring symbols whose joining has the smallest priority (of equal priorities
// the leftmost two), again and again, until no two neighbours can be joined. For a text of n bytes the loop takes time O(n log n) and 4.5
// n bytes of memory.
#pragma once

#include <cstdint>

#include "text/models/min_tree.hpp"
#include "text/position_set.hpp"

namespace tessera::detail {

// If a word has at least this many bytes, its working memory is freed before its tokens are added.
inline constexpr std::uint32_t kLargeWord = 1u << 16;

// A symbol is identified by the position of its first byte. The symbol ends where the next symbol begins, or with the text.
struct Merge {
  PositionSet starts;  // positions where symbols begin; before merge(), set the positions where the first symbols begin
  MinTree order;       // [position of a symbol]: priority of joining it with the next symbol

  // Joins symbols until no two neighbours can be joined. `size`: bytes of the text. priority(left, right, end) returns the priority of
  // joining the symbol at bytes [left, right) with the symbol at bytes [right, end); MinTree::kNever if the two cannot be joined.
  // join(left, priority) is called each time two symbols become one; `left` is the position of the joined symbol.
  template <class Priority, class Join>
  void merge(std::uint32_t size, const Priority& priority, const Join& join) {
    order.assign(size);
    for (std::uint32_t left = 0, right = starts.next(1); right < size;) {
      const std::uint32_t end = starts.next(right + 1);
      order.put(left, priority(left, right, end));
      left = right;
      right = end;
    }
    order.build();
    for (;;) {
      const auto [best, left] = order.least();
      if (best == MinTree::kNever) return;
      const std::uint32_t right = starts.next(left + 1), end = starts.next(right + 1);
      join(left, best);
      starts.erase(right);
      order.set(right, MinTree::kNever);
      order.set(left, end < size ? priority(left, end, starts.next(end + 1)) : MinTree::kNever);
      if (left == 0) continue;
      const std::uint32_t before = starts.previous(left - 1);
      order.set(before, priority(before, left, end));
    }
  }
};

}  // namespace tessera::detail
