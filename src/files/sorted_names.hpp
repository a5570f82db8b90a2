// Finds items of a list by their names, by binary search in a list of indices that is sorted by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::detail {

// Returns the indices of `items`, sorted by the items' names. find_sorted() searches in them.
template <class Items, class Name>
std::vector<std::uint32_t> sorted_indices(const Items& items, Name&& name) {
  std::vector<std::uint32_t> order(items.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return name(items[a]) < name(items[b]); });
  return order;
}

// Returns the item whose name is `wanted`, or nullptr. `order` comes from sorted_indices().
template <class Items, class Name>
auto find_sorted(const Items& items, std::span<const std::uint32_t> order, std::string_view wanted, Name&& name) noexcept
    -> decltype(&items[0]) {
  const auto at = std::lower_bound(order.begin(), order.end(), wanted,
                                   [&](std::uint32_t i, std::string_view text) { return name(items[i]) < text; });
  return at != order.end() && name(items[*at]) == wanted ? &items[*at] : nullptr;
}

}  // namespace tessera::detail
