// Divides the work of an operation among an executor's threads. Each slot (a thread) has its own scratch.
#pragma once

#include <algorithm>
#include <cstddef>

#include <tessera/extend/core/executor.hpp>

#include "core/fp_state.hpp"
#include "cpu/attention/stretches.hpp"

namespace tessera::cpu {

// Operations with fewer values than this are computed by one thread: the work takes less time than waking another thread, which takes 1
// to 2 microseconds.
inline constexpr std::size_t kValuesWorthSharing = 8192;

class Tasks {
 public:
  // `executor` must outlive the object.
  explicit Tasks(Executor& executor)
      : executor_(executor),
        slots_(std::clamp<std::size_t>(executor.concurrency(), 1, kMaxSlots)),
        stretches_(slots_) {}

  // Returns how many tasks run at once.
  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }
  // Sets the memory for the scratches of all slots: slots() * `bytes` bytes.
  void set_scratch(std::byte* scratch, std::size_t bytes) noexcept {
    scratch_ = scratch;
    scratch_bytes_ = bytes;
  }

  // Calls fn(item, scratch) for each item in [0, n), on any threads, each with the scratch of its slot. A thread takes
  // up to `grain` items at a time. An item's result must not depend on the slot that computes the item.
  template <class Fn>
  void for_each(std::size_t n, std::size_t grain, Fn&& fn) noexcept {
    struct Job {
      Fn& fn;
      std::size_t grain;
      Tasks& tasks;
    } job{fn, grain, *this};
    const auto task = [](void* context, std::size_t slot) {
      const detail::FpState fp_state;
      auto& work = *static_cast<Job*>(context);
      std::byte* scratch = work.tasks.scratch_ + slot * work.tasks.scratch_bytes_;
      Stretches& stretches = work.tasks.stretches_;
      for (auto items = stretches.take(slot, work.grain); items.count != 0; items = stretches.take(slot, work.grain)) {
        for (std::size_t i = 0; i < items.count; ++i) work.fn(items.first + i, scratch);
      }
    };
    const std::size_t tasks = std::min(slots_, (n + grain - 1) / grain);
    stretches_.deal(n, std::max<std::size_t>(tasks, 1));
    if (tasks <= 1) {
      task(&job, 0);
    } else {
      executor_.parallel_for(tasks, task, &job);
    }
  }

 private:
  // The largest number of slots, even if a host's executor runs more tasks at once. The limit bounds the memory, because each slot has
  // scratch.
  static constexpr std::size_t kMaxSlots = 1024;

  Executor& executor_;
  std::size_t slots_;
  Stretches stretches_;
  std::byte* scratch_ = nullptr;  // [slots][scratch_bytes_]
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tessera::cpu
