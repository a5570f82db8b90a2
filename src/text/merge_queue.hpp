// The candidates of a BPE merge, best first. A text of n symbols makes at most 3n of them: n log n in all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera::detail {

inline constexpr std::uint32_t kNoSymbol = 0xFFFFFFFFu;

// Joining the symbol at `left` with the one at `right`. `check` lets the owner see whether either has changed since.
struct MergeCandidate {
  std::uint64_t order;  // priority in the upper half, the left symbol's position in the lower: ties go leftmost
  std::uint32_t right;
  std::uint32_t check;

  [[nodiscard]] std::uint32_t priority() const noexcept { return static_cast<std::uint32_t>(order >> 32); }
  [[nodiscard]] std::uint32_t left() const noexcept { return static_cast<std::uint32_t>(order); }
};

class MergeQueue {
 public:
  // Before the first pop: candidates are gathered, then put in order at once, which is linear.
  void start() noexcept { heap_.clear(); }
  void gather(std::uint32_t priority, std::uint32_t left, std::uint32_t right, std::uint32_t check) {
    heap_.push_back({std::uint64_t{priority} << 32 | left, right, check});
  }
  void order() noexcept { std::make_heap(heap_.begin(), heap_.end(), later); }

  void push(std::uint32_t priority, std::uint32_t left, std::uint32_t right, std::uint32_t check) {
    gather(priority, left, right, check);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] MergeCandidate pop() noexcept {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const MergeCandidate best = heap_.back();
    heap_.pop_back();
    return best;
  }

 private:
  static bool later(const MergeCandidate& a, const MergeCandidate& b) noexcept { return a.order > b.order; }
  std::vector<MergeCandidate> heap_;
};

}  // namespace tessera::detail
