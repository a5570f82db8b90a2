// Makes an engine's backend and its threads. Only this file and plan.cpp, which checks options, know which backends exist.
#pragma once

#include <memory>
#include <vector>

#include <tessera/engine.hpp>
#include <tessera/extend/core/executor.hpp>

#include "backend/backend.hpp"
#include "ranks/threads/rank_group.hpp"

namespace tessera::detail {

// A backend and its threads. With several ranks, the backend is rank 0's.
struct Machine {
  std::shared_ptr<Executor> executor;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<ThreadRanks> ranks;                  // nullptr: one rank only
  std::vector<std::unique_ptr<RankPart>> parts;        // [ranks], whose models are not loaded yet; empty: one rank only
};

// Makes the backend for `options`: starts threads, unless the options bring an executor, and opens the device. `others`: connections to
// the ranks in other processes; nullptr: there are none. Precondition: resolve_options() returned `options`. Errors: an instruction set,
// numerics or a device that does not exist here; no memory.
[[nodiscard]] Result<Machine> make_backend(const EngineOptions& options, Communicator* others = nullptr);

// Makes a backend for planning, without threads and without opening a device. It computes bytes of memory, but no results.
[[nodiscard]] Result<Machine> make_planner(const EngineOptions& options);

}  // namespace tessera::detail
