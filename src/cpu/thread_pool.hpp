// The engine's own executor: the calling thread and n - 1 workers. A worker spins a few microseconds for the next piece
// of work, since a decode step is a chain of short ones, then parks on a futex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <tessera/core/executor.hpp>
#include <tessera/core/result.hpp>

namespace tessera::cpu {

class ThreadPool final : public Executor {
 public:
  // `threads` >= 1 threads in all; 0 means the number of hardware threads.
  [[nodiscard]] static Result<std::unique_ptr<ThreadPool>> create(std::size_t threads) noexcept;
  ~ThreadPool() override;

  [[nodiscard]] std::size_t concurrency() const noexcept override { return workers_.size() + 1; }
  void parallel_for(std::size_t n, void (*task)(void* context, std::size_t index), void* context) noexcept override;

 private:
  ThreadPool() = default;
  void work() noexcept;
  void run_tasks() noexcept;

  std::vector<std::thread> workers_;

  // One job at a time. The fields below generation_ are written before it is raised and read after it is seen raised.
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  std::atomic<bool> stopping_{false};
  void (*task_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
  std::size_t n_ = 0;
  alignas(64) std::atomic<std::size_t> next_{0};
  alignas(64) std::atomic<std::uint32_t> busy_{0};  // workers that have not finished the present job
};

}  // namespace tessera::cpu
