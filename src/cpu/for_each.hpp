// CpuBackend::for_each(): divides the work of an operation among the executor's threads. Included only by the backend's sources.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/fp_state.hpp"
#include "cpu/cpu_backend.hpp"

namespace tessera::cpu {

template <class Fn>
void CpuBackend::for_each(std::size_t n, std::size_t grain, Fn&& fn) noexcept {
  struct Job {
    Fn& fn;
    std::size_t grain;
    std::byte* scratch;
    std::size_t scratch_size;
    Stretches& stretches;
  } job{fn, grain, scratch_, scratch_size_, stretches_};
  // One task for each slot. An item's result does not depend on the slot that computes the item.
  const auto task = [](void* context, std::size_t slot) {
    const detail::FpState fp_state;
    auto& work = *static_cast<Job*>(context);
    std::byte* scratch = work.scratch + slot * work.scratch_size;
    for (auto items = work.stretches.take(slot, work.grain); items.count != 0;
         items = work.stretches.take(slot, work.grain)) {
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

// Work on fewer values than this is not divided: it takes less time than waking a thread, which takes 1 to 2 microseconds.
inline constexpr std::size_t kValuesWorthSharing = 8192;

template <class Fn>
void CpuBackend::for_each_row(std::size_t columns, Fn&& fn) noexcept {
  if (n_rows_ == 0) return;
  for_each(n_rows_, std::max<std::size_t>(1, kValuesWorthSharing / columns), fn);
}

}  // namespace tessera::cpu
