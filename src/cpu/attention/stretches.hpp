// Divides the items of a piece of parallel work among slots. A slot stands for one thread. Each slot has a stretch: consecutive items,
// which it takes from the front, in order. So a slot's thread reads weights and rows that lie side by side, and uses the data that it has
// prefetched. If a slot's stretch is empty, the slot takes the second half of the longest stretch, so that threads of unequal speed end
// at the same time. No item waits for another item.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tessera::cpu {

class Stretches {
 public:
  struct Items {
    std::size_t first = 0, count = 0;  // count 0: all items are taken
  };

  explicit Stretches(std::size_t most_slots) : stretches_(std::make_unique<Stretch[]>(most_slots)) {}

  // Deals items [0, n), n below 2^32, to `slots` slots. Call it before the slots start.
  void deal(std::size_t n, std::size_t slots) noexcept {
    slots_ = slots;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      stretches_[slot].bounds.store(packed(n * slot / slots, n * (slot + 1) / slots), std::memory_order_relaxed);
    }
  }

  // Takes up to `grain` items for a slot. Each item is returned by exactly one call.
  [[nodiscard]] Items take(std::size_t slot, std::size_t grain) noexcept {
    std::atomic<std::uint64_t>& own = stretches_[slot].bounds;
    if (const Items items = take_front(own, grain); items.count != 0) return items;
    for (;;) {
      std::atomic<std::uint64_t>* longest = nullptr;
      std::size_t most = 0;
      for (std::size_t other = 0; other < slots_; ++other) {
        const std::uint64_t bounds = stretches_[other].bounds.load(std::memory_order_relaxed);
        if (length(bounds) > most) most = length(bounds), longest = &stretches_[other].bounds;
      }
      if (longest == nullptr) return {};
      const Items taken = take_back_half(*longest, grain);
      const std::size_t now = std::min(grain, taken.count);
      if (now == 0) continue;
      // A plain store is enough: the slot's own stretch was empty, and other slots do not change an empty stretch.
      own.store(packed(taken.first + now, taken.first + taken.count), std::memory_order_relaxed);
      return {taken.first, now};
    }
  }

 private:
  // A stretch in one number: the first item in the low half, the end of the items in the high half.
  struct alignas(64) Stretch {
    std::atomic<std::uint64_t> bounds{0};
  };
  static constexpr std::uint64_t packed(std::size_t first, std::size_t last) noexcept {
    return std::uint64_t{last} << 32 | first;
  }
  static constexpr std::size_t first_of(std::uint64_t bounds) noexcept { return bounds & 0xffffffffu; }
  static constexpr std::size_t last_of(std::uint64_t bounds) noexcept { return bounds >> 32; }
  static constexpr std::size_t length(std::uint64_t bounds) noexcept { return last_of(bounds) - first_of(bounds); }

  static Items take_front(std::atomic<std::uint64_t>& from, std::size_t grain) noexcept {
    std::uint64_t bounds = from.load(std::memory_order_relaxed);
    for (;;) {
      const std::size_t first = first_of(bounds), count = std::min(grain, length(bounds));
      if (count == 0) return {};
      if (from.compare_exchange_weak(bounds, packed(first + count, last_of(bounds)), std::memory_order_relaxed)) {
        return {first, count};
      }
    }
  }
  // Takes half of the items from the back, at least `grain` if there are that many.
  static Items take_back_half(std::atomic<std::uint64_t>& from, std::size_t grain) noexcept {
    std::uint64_t bounds = from.load(std::memory_order_relaxed);
    for (;;) {
      const std::size_t last = last_of(bounds), all = length(bounds), count = std::min(std::max(grain, (all + 1) / 2), all);
      if (count == 0) return {};
      if (from.compare_exchange_weak(bounds, packed(first_of(bounds), last - count), std::memory_order_relaxed)) {
        return {last - count, count};
      }
    }
  }

  std::unique_ptr<Stretch[]> stretches_;
  std::size_t slots_ = 0;
};

}  // namespace tessera::cpu
