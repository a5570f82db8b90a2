// How the backend's operations spread their work over the executor. Included by its sources only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "cpu/cpu_backend.hpp"
#include "support/fp_state.hpp"

namespace tessera::cpu {

template <class Fn>
void CpuBackend::for_each(std::size_t n, std::size_t grain, Fn&& fn) noexcept {
  struct Job {
    Fn& fn;
    std::size_t n, grain;
    std::byte* scratch;
    std::size_t scratch_size;
    std::atomic<std::size_t> next{0};
  } job{fn, n, grain, scratch_, scratch_size_};
  // One task per slot; each takes stretches of items until there are none. Which slot does an item never matters.
  const auto task = [](void* context, std::size_t slot) {
    const detail::FpState fp_state;
    auto& work = *static_cast<Job*>(context);
    std::byte* scratch = work.scratch + slot * work.scratch_size;
    for (std::size_t i = work.next.fetch_add(work.grain, std::memory_order_relaxed); i < work.n;
         i = work.next.fetch_add(work.grain, std::memory_order_relaxed)) {
      for (std::size_t j = i; j < std::min(i + work.grain, work.n); ++j) work.fn(j, scratch);
    }
  };
  const std::size_t pieces = (n + grain - 1) / grain;
  if (pieces <= 1) {
    task(&job, 0);
  } else {
    executor_.parallel_for(std::min(slots_, pieces), task, &job);
  }
}

// Work below this many rows costs less than waking a thread.
inline constexpr std::size_t kRowsWorthSharing = 8;

template <class Fn>
void CpuBackend::for_each_row(Fn&& fn) noexcept {
  for_each(n_rows_, kRowsWorthSharing, [&](std::size_t row, std::byte*) { fn(row); });
}

}  // namespace tessera::cpu
