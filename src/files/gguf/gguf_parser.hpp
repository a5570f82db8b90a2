// Parses a GGUF header, for GgufFile::read().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf.hpp>

namespace tessera::detail {

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 0;
  std::uint64_t bytes = 0;                     // everything before the first tensor's data, padding included
  std::uint64_t blob_bytes = 0;                // everything up to the end of the last tensor's description
  std::unique_ptr<std::byte[]> blob;           // a copy of the first blob_bytes bytes; the spans and string_views below point into it
  std::vector<GgufEntry> entries;              // in file order
  std::vector<GgufTensor> tensors;             // in file order
  std::vector<std::uint32_t> entries_by_key;   // indices into `entries`, sorted by key
  std::vector<std::uint32_t> tensors_by_name;  // indices into `tensors`, sorted by name

  [[nodiscard]] const GgufEntry* find(std::string_view key) const noexcept;  // nullptr if absent
};

[[nodiscard]] Result<GgufHeader> parse_gguf(ByteSource& source, const std::stop_token& stop);

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

inline const GgufEntry* GgufHeader::find(std::string_view key) const noexcept {
  return find_sorted(std::span(entries), entries_by_key, key, [](const GgufEntry& entry) { return entry.key; });
}

}  // namespace tessera::detail
