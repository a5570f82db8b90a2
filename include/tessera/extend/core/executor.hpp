// An Executor runs parallel work. By default an engine has a small thread pool of its own. A host that already has a thread pool derives a
// class from Executor and passes it as EngineOptions::executor.
//
//   struct Serial final : tessera::Executor {
//     std::size_t concurrency() const noexcept override { return 1; }
//     void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
//       for (std::size_t i = 0; i < n; ++i) task(context, i);
//     }
//   };
#pragma once

#include <cstddef>

namespace tessera {

class Executor {
 public:
  virtual ~Executor() = default;

  // Returns how many tasks can run at once. Work is split by this number; results do not depend on it.
  [[nodiscard]] virtual std::size_t concurrency() const noexcept = 0;

  // Runs task(context, i) once for each i in [0, n), in any order, on any threads, and returns when all tasks are done. Tasks never
  // wait for each other and never throw. Called by one thread at a time per engine.
  virtual void parallel_for(std::size_t n, void (*task)(void* context, std::size_t index), void* context) noexcept = 0;
};

// Returns the number of threads of an engine whose EngineOptions::threads is 0: the number of processors in this thread's affinity mask. If
// the CPU quota of the process's control groups (of a container) is less, returns the quota, rounded down. At least 1.
[[nodiscard]] std::size_t usable_threads() noexcept;

}  // namespace tessera
