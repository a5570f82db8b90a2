// The merging that both families of BPE share. Of all pairs of neighbouring symbols the pair with the least priority becomes one symbol (of
// equal priorities the leftmost), until no pair has a priority. A text of n bytes takes time n log n, and 4.5 bytes for each byte.
#pragma once

#include <cstdint>

#include "text/models/min_tree.hpp"
#include "text/position_set.hpp"

namespace tessera::detail {

// A word of this many bytes gives its working memory back before its tokens are added.
inline constexpr std::uint32_t kLargeWord = 1u << 16;

// Symbols are known by the positions where they begin. A symbol ends where the next begins, or with the text.
struct Merge {
  PositionSet starts;  // beginnings of the symbols; before merge(): of the first symbols
  MinTree order;       // by a symbol's position: priority of joining it with the next

  // Merges all symbols that can be merged. priority(left, right, end) returns the priority of joining the symbols [left, right) and [right,
  // end), or MinTree::kNever. join(left, priority) is called when two symbols have become one that begins at left.
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
