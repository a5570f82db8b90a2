// The merging that both families of BPE do: of all neighbouring symbols the pair with the least priority becomes one,
// the leftmost of equals, until no pair has a priority. A text of n bytes takes time n log n and 4.5 bytes a byte.
#pragma once

#include <cstdint>

#include "text/models/min_tree.hpp"
#include "text/position_set.hpp"

namespace tessera::detail {

// A word of this many bytes gives its working memory back before its tokens are added.
inline constexpr std::uint32_t kLargeWord = 1u << 16;

// Symbols are known by the positions where they begin; one ends where the next begins, or with the text.
struct Merge {
  PositionSet starts;  // of the symbols; before merge(): of those to begin with
  MinTree order;       // by a symbol's position: the priority of joining it with the next

  // priority(left, right, end): of joining the symbols [left, right) and [right, end), or MinTree::kNever.
  // join(left, priority): the two become one that begins at left.
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
