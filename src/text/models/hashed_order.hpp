// An index of numbered things by their keys, without a worst case. The hash of a key gives a slot; the things of a slot lie in the order of
// their keys, and are found by bisection. Most slots have one thing or none. A file whose keys were chosen to share a slot costs the
// logarithm of their number, where a hash table would walk past all of them.
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

  // Indexes the things [0, count). hash_of(thing) is empty for things that shall not be found. less(a, b) orders two things of a slot by
  // key; of equal keys the first thing is found. Returns false if `stop` was requested; the index is then useless.
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
      entry = sum;  // the slot's first place, which moves on to its end as the slot fills
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

  // Finds a thing. compare(thing) compares the thing's key with the wanted one.
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

  std::vector<std::uint32_t> ends_;   // [slots]: end of each slot in order_, where the next one begins
  std::vector<std::uint32_t> order_;  // the things, by slot and key
};

}  // namespace tessera::detail
