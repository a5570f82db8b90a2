// For the merge loop of BPE: holds a priority for each position of a text, and finds the position with the smallest priority. The
// priorities are the leaves of a tree. Each 16 neighbouring priorities have their minimum on the next level, each 16 minima have theirs
// on the level above, and so on, up to one block of at most 16 minima. If a priority changes, the levels above it are updated until a
// minimum stays the same. A search goes down from the top. The tree takes 4.3 bytes of memory for each position.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

class MinTree {
 public:
  static constexpr std::uint32_t kNever = 0xFFFFFFFFu;  // the priority of a position that must not be found

  // Begins with `size` positions, all with kNever. Then set priorities with put(), and call build() once.
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
    values_.reserve(total);  // allocates exactly this size, if at all
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
  // Returns the leftmost of the positions with the smallest priority, and this priority; kNever if all priorities are kNever.
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

  std::vector<std::uint32_t> values_;     // the priorities, then the minima of each level; each level is padded to whole blocks of 16
  std::array<std::size_t, 9> begin_{};    // index of each level's first entry; 9 levels are enough, since 16^9 exceeds 32 bits
  std::size_t depth_ = 0;
};

}  // namespace tessera::detail
