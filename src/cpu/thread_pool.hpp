// The engine's own executor, used if the host gives none: the calling thread and n - 1 worker threads. A decode step is a chain of short
// jobs (parallel_for() calls). So after a job, a worker polls for the next job for a short time, and only then sleeps (on a futex).
//
// The caller takes tasks too. At the end of a job, the caller waits only for workers that have joined the job. So a worker that still
// sleeps, or that the system has preempted before it joined, delays nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/executor.hpp>

#include "os/thread.hpp"

namespace tessera::cpu {

class ThreadPool final : public Executor {
 public:
  // Makes a pool of `threads` threads, the caller included; 0: usable_threads().
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

  std::vector<os::ThreadHandle> workers_;
  std::atomic<bool> stopping_{false};

  // Counts the jobs. Workers poll this counter, so nothing else is in its cache line.
  alignas(64) std::atomic<std::uint32_t> generation_{0};

  // The present job. All its members are in one cache line, because a worker that joins (members_) reads the others right after. Members
  // that are not atomic are written only while the job is closed (no kOpen) and no worker is in it.
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;
  alignas(64) std::atomic<std::uint32_t> members_{0};  // workers in the job; plus kOpen while more may join
  std::atomic<std::size_t> next_{0};                   // index of the next task
  std::size_t n_ = 0;
  void (*task_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
};

}  // namespace tessera::cpu
