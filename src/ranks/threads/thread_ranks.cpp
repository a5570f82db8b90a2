#include "ranks/threads/thread_ranks.hpp"

#include <cstring>

#include "core/error.hpp"
#include "core/wait.hpp"

namespace tessera::detail {

// One rank's Communicator. In a gather all ranks wait for each other once or twice (ThreadRanks::meet()).
// - Few bytes (kSlotBytes): each rank copies its bytes into one of its two buffers (slots), from which the other ranks read. Gathers use
//   the two slots in turn. One meeting is enough: a slot is written again only after the meeting of the next gather, and by then all ranks
//   have read it.
// - Many bytes: each rank reads the bytes of another rank directly from that rank's memory. A second meeting tells each rank that all other
//   ranks have read its bytes, so that it may change them.
class ThreadRanks::End final : public Communicator {
 public:
  End(ThreadRanks& all, std::uint32_t rank) : all_(all), rank_(rank), slots_(2 * kSlotBytes) {}

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept override { return static_cast<std::uint32_t>(all_.ends_.size()); }

  Status gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> parts) noexcept override {
    bool few = true;
    for (const auto& part : parts) few = few && part.size() <= kSlotBytes;
    turn_ = 1 - turn_;
    given_ = few ? slots_.data() + turn_ * kSlotBytes : mine.data();
    if (few && !mine.empty()) std::memcpy(slots_.data() + turn_ * kSlotBytes, mine.data(), mine.size());
    if (!all_.meet()) return stopped();
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      // With few bytes, another rank may have begun the next gather already. The next gather changes that rank's given_, but not this slot.
      const std::byte* from = few ? all_.ends_[i]->slots_.data() + turn_ * kSlotBytes : all_.ends_[i]->given_;
      if (i != rank_ && !parts[i].empty()) std::memcpy(parts[i].data(), from, parts[i].size());
    }
    return few || all_.meet() ? Status() : stopped();
  }

  void stop() noexcept override { all_.stop(); }
  void restart() noexcept { turn_ = 0; }

 private:
  [[nodiscard]] static Status stopped() noexcept {
    return make_error(ErrorCode::cancelled, "another rank has stopped this step");
  }

  ThreadRanks& all_;
  std::uint32_t rank_;
  std::vector<std::byte> slots_;  // [2][kSlotBytes]
  std::size_t turn_ = 0;
  const std::byte* given_ = nullptr;
};

ThreadRanks::~ThreadRanks() = default;

Communicator& ThreadRanks::of(std::uint32_t rank) noexcept { return *ends_[rank]; }

ThreadRanks::ThreadRanks(std::uint32_t ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(*this, rank));
}

void ThreadRanks::restart() noexcept {
  stopped_.store(false, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  for (const auto& end : ends_) end->restart();
}

bool ThreadRanks::meet() noexcept {
  const std::uint32_t meeting = meetings_.load(std::memory_order_acquire);
  if (stopped_.load(std::memory_order_acquire)) return false;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ends_.size()) {
    arrived_.store(0, std::memory_order_relaxed);
    meetings_.fetch_add(1);  // sequentially consistent: either notify_all() sees a rank parked, or the rank sees this
    meetings_.notify_all();
  } else {
    wait_while(meetings_, meeting);
  }
  return !stopped_.load(std::memory_order_acquire);
}

void ThreadRanks::stop() noexcept {
  stopped_.store(true, std::memory_order_release);
  meetings_.fetch_add(1);
  meetings_.notify_all();
}

}  // namespace tessera::detail
