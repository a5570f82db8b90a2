// The engine's own executor: the calling thread and n - 1 workers. A worker looks for the next piece of work for a short
// time, since a decode step is a chain of short ones, then parks on a futex.
//
// The caller takes tasks too, and waits for those workers only that have joined: one that is parked, or that the system
// has taken off its core, delays nothing.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/executor.hpp>

namespace tessera::cpu {

class ThreadPool final : public Executor {
 public:
  // `threads` >= 1 threads in all; 0 means usable_threads().
  [[nodiscard]] static Result<std::unique_ptr<ThreadPool>> create(std::size_t threads) noexcept;
  ~ThreadPool() override;

  [[nodiscard]] std::size_t concurrency() const noexcept override { return workers_.size() + 1; }
  void parallel_for(std::size_t n, void (*task)(void* context, std::size_t index), void* context) noexcept override;

 private:
  ThreadPool() = default;
  Status start(std::size_t workers);
  void work() noexcept;
  bool join() noexcept;
  void leave() noexcept;
  void run_tasks() noexcept;

  std::vector<pthread_t> workers_;
  std::atomic<bool> stopping_{false};

  // Raised with each job. Workers look at it without pause, so nothing else is in its cache line.
  alignas(64) std::atomic<std::uint32_t> generation_{0};

  // The job, one at a time: in one cache line, since who joins takes a task next. What is not atomic is written while
  // the job is closed and has no members.
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;
  alignas(64) std::atomic<std::uint32_t> members_{0};  // workers in the job; kOpen while others may join
  std::atomic<std::size_t> next_{0};                   // task
  std::size_t n_ = 0;
  void (*task_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
};

}  // namespace tessera::cpu
