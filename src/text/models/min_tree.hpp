// Priorities by position, and the position of the least. Every 16 priorities have their minimum one level up, and so on to one block at the
// top. A change walks up as far as a minimum changes; a search for the least walks down. Takes 4.3 bytes for each position.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class MinTree {
 public:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFu;  // priority of a position that shall not be found

  // Sets all priorities to kNever. Set priorities with put(), then call build().
  void assign(std::size_t size) {
    depth_ = 0;
    std::size_t total = 0;
    for (std::size_t count = size; depth_ == 0 || count > 1;) {
      const std::size_t blocks = std::max<std::size_t>((count + kFan - 1) / kFan, 1);
      begin_[depth_++] = total;
      total += blocks * kFan;
      count = blocks;
    }
    values_.clear();
    values_.reserve(total);  // if it must allocate, exactly this size
    values_.resize(total, kNever);
  }
  void put(std::size_t at, std::uint32_t priority) noexcept { values_[at] = priority; }
  void build() noexcept {
    for (std::size_t level = 1; level < depth_; ++level) {
      const std::uint32_t* block = values_.data() + begin_[level - 1];
      for (std::size_t i = begin_[level]; block < values_.data() + begin_[level]; ++i, block += kFan) values_[i] = least_of(block);
    }
  }
  void set(std::size_t at, std::uint32_t priority) noexcept {
    values_[at] = priority;
    for (std::size_t level = 1; level < depth_; ++level) {
      at /= kFan;
      const std::uint32_t least = least_of(values_.data() + begin_[level - 1] + at * kFan);
      std::uint32_t& above = values_[begin_[level] + at];
      if (above == least) return;
      above = least;
    }
  }

  struct Least {
    std::uint32_t priority, at;
  };
  // Returns the leftmost position with the least priority, and that priority: kNever if all priorities are kNever.
  [[nodiscard]] Least least() const noexcept {
    const std::uint32_t priority = least_of(values_.data() + begin_[depth_ - 1]);
    std::size_t at = 0;
    for (std::size_t level = depth_; level-- > 0;) {
      const std::uint32_t* block = values_.data() + begin_[level] + at * kFan;
      std::size_t child = 0;
      while (block[child] != priority) ++child;
      at = at * kFan + child;
    }
    return {priority, static_cast<std::uint32_t>(at)};
  }
  void release() noexcept { std::vector<std::uint32_t>().swap(values_); }

 private:
  static constexpr std::size_t kFan = 16;
  static std::uint32_t least_of(const std::uint32_t* block) noexcept {
    std::uint32_t least = block[0];
    for (std::size_t i = 1; i < kFan; ++i) least = std::min(least, block[i]);
    return least;
  }

  std::vector<std::uint32_t> values_;     // the priorities, then the minima of each level, every level in whole blocks
  std::array<std::size_t, 9> begin_{};    // beginning of each level: 16 to the 9th power is more than 32 bits count
  std::size_t depth_ = 0;
};

}  // namespace tessera::detail
