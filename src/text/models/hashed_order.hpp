// An index that finds items by key, quickly even in the worst case. An item is a number, such as a token's id; its key, such as the
// token's text, is stored by the owner of the index. The hash of a key selects a slot, which is a list of items, as in a hash table. In
// each slot the items are sorted by key and found by binary search. Most slots have one item or none. If a hostile file has n keys that
// all fall into one slot, a search takes log n comparisons; in a hash table it would take n.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace tessera::detail {

class HashedOrder {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  // Indexes the items ("things") 0 to count - 1. hash_of(thing) returns the hash of the item's key; nullopt if the item shall not be
  // found. less(a, b) returns whether the key of item a comes before the key of item b. If several items have equal keys, the one with
  // the lowest number is found. Returns false if `stop` was requested; the index must not be used then.
  template <class HashOf, class Less>
  [[nodiscard]] bool build(std::uint32_t count, const HashOf& hash_of, const Less& less, const std::stop_token& stop) {
    ends_.assign(slots(count), 0);
    const auto each = [&](auto&& act) {
      for (std::uint32_t thing = 0; thing < count; ++thing) {
        if ((thing & 0xFFFFu) == 0 && stop.stop_requested()) return false;
        if (const std::optional<std::uint64_t> hash = hash_of(thing)) act(thing, slot_of(*hash));
      }
      return true;
    };
    if (!each([&](std::uint32_t, std::size_t slot) { ++ends_[slot]; })) return false;
    std::uint32_t sum = 0;
    for (std::uint32_t& entry : ends_) {
      const std::uint32_t size = entry;
      entry = sum;  // beginning of the slot; while the slot is filled, this advances to its end
      sum += size;
    }
    order_.reserve(count);
    order_.resize(sum);
    if (!each([&](std::uint32_t thing, std::size_t slot) { order_[ends_[slot]++] = thing; })) return false;
    std::uint32_t begin = 0;
    for (const std::uint32_t end : ends_) {
      if (end - begin > 1) {
        if (stop.stop_requested()) return false;
        std::sort(order_.begin() + begin, order_.begin() + end, less);
      }
      begin = end;
    }
    return true;
  }

  // Returns the item whose key has this hash and equals the wanted key; kNone if there is none. compare(item) compares the item's key
  // with the wanted key.
  template <class Compare>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, const Compare& compare) const noexcept {
    if (ends_.empty()) return kNone;
    const std::size_t slot = slot_of(hash);
    std::uint32_t low = slot == 0 ? 0 : ends_[slot - 1], high = ends_[slot];
    std::uint32_t found = kNone;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      const std::strong_ordering order = compare(order_[middle]);
      if (order < 0) {
        low = middle + 1;
      } else {
        if (order == 0) found = order_[middle];
        high = middle;
      }
    }
    return found;
  }

  [[nodiscard]] static std::uint64_t plan_bytes(std::uint64_t count) noexcept {
    return (slots(count) + count) * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return (ends_.capacity() + order_.capacity()) * sizeof(std::uint32_t);
  }
  bool operator==(const HashedOrder&) const = default;

 private:
  [[nodiscard]] static std::size_t slots(std::uint64_t count) noexcept {
    return std::bit_ceil(static_cast<std::size_t>(count) + 1);
  }
  [[nodiscard]] std::size_t slot_of(std::uint64_t hash) const noexcept { return hash & (ends_.size() - 1); }

  std::vector<std::uint32_t> ends_;   // [slots]: where each slot ends in order_; the next slot begins there
  std::vector<std::uint32_t> order_;  // all things, by slot, and within a slot by key
};

}  // namespace tessera::detail
