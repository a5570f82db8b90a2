// How parallel work runs. An engine has a small thread pool of its own; a host with a pool gives an Executor instead.
#pragma once

#include <cstddef>

namespace tessera {

class Executor {
 public:
  virtual ~Executor() = default;

  // How many tasks can run at once; work is split with it in mind. The results never depend on it.
  [[nodiscard]] virtual std::size_t concurrency() const noexcept = 0;

  // Runs task(context, i) once for each i in [0, n), in any order, on any threads, and returns when all are done. Tasks
  // never wait for each other and never throw. Called by one thread at a time per engine.
  virtual void parallel_for(std::size_t n, void (*task)(void* context, std::size_t index), void* context) noexcept = 0;
};

// How many threads an engine has if EngineOptions::threads is 0: the processors in this thread's affinity mask, or fewer
// where the process's control groups grant less processor time than that (a container's quota), rounded down; at least 1.
[[nodiscard]] std::size_t usable_threads() noexcept;

}  // namespace tessera
