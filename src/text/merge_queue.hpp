// The candidates of a BPE merge, best first. A text of n symbols makes at most 3n of them: n log n in all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::detail {

inline constexpr std::uint32_t kNoSymbol = 0xFFFFFFFFu;

// Joining the symbol at `left` with the one at `right`. `check` lets the owner see whether either has changed since.
struct MergeCandidate {
  std::uint64_t order;  // priority in the upper half, the left symbol's position in the lower: ties go leftmost
  std::uint32_t right;
  std::uint32_t check;

  [[nodiscard]] std::uint32_t left() const noexcept { return static_cast<std::uint32_t>(order); }
};

// A sorted run that is read in order, and a heap of what came since. When the run is used up the heap's contents become
// the next one. So a long run of one letter, whose candidates come in order, costs no heap operations at all, and each
// candidate is sorted at most once.
class MergeQueue {
 public:
  void clear() noexcept {
    run_.clear();
    heap_.clear();
    at_ = 0;
  }
  void push(std::uint32_t priority, std::uint32_t left, std::uint32_t right, std::uint32_t check) {
    heap_.push_back({std::uint64_t{priority} << 32 | left, right, check});
    if (at_ < run_.size()) std::push_heap(heap_.begin(), heap_.end(), later);
  }
  // false when there is none left.
  [[nodiscard]] bool pop(MergeCandidate& best) noexcept {
    if (at_ == run_.size()) {
      run_.clear();
      at_ = 0;
      run_.swap(heap_);
      if (!std::is_sorted(run_.begin(), run_.end(), earlier)) std::sort(run_.begin(), run_.end(), earlier);
    }
    if (at_ == run_.size()) return false;
    if (heap_.empty() || earlier(run_[at_], heap_.front())) {
      best = run_[at_++];
    } else {
      best = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
    }
    return true;
  }

 private:
  static bool earlier(const MergeCandidate& a, const MergeCandidate& b) noexcept { return a.order < b.order; }
  static bool later(const MergeCandidate& a, const MergeCandidate& b) noexcept { return a.order > b.order; }
  std::vector<MergeCandidate> run_;  // ascending; from at_ on
  std::vector<MergeCandidate> heap_;  // a heap while the run lasts, then just gathered
  std::size_t at_ = 0;
};

}  // namespace tessera::detail
