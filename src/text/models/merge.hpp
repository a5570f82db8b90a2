// The merge loop that both families of BPE share. A text is a sequence of symbols. Again and again the two neighbouring symbols with the
// smallest priority are joined to one symbol (of equal priorities the leftmost two), until no two neighbours can be joined. For a text of n
// bytes the loop takes time O(n log n) and 4.5 n bytes of memory.
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

  // Joins symbols until no two neighbours can be joined. priority(left, right, end) returns the priority of joining the symbols [left,
  // right) and [right, end); MinTree::kNever if they cannot be joined. join(left, priority) is called after two symbols were joined to
  // one that begins at `left`.
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
