// Makes an engine's backend and its threads. Beside plan.cpp, which checks options, this is the only code that knows which backends exist.
#pragma once

#include <memory>
#include <vector>

#include <tessera/engine.hpp>
#include <tessera/extend/core/executor.hpp>

#include "backend/backend.hpp"
#include "ranks/threads/rank_group.hpp"

namespace tessera::detail {

// A backend and the threads that it uses. With several ranks: rank 0's.
struct Machine {
  std::shared_ptr<Executor> executor;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<ThreadRanks> ranks;                  // nullptr: there is one rank
  std::vector<std::unique_ptr<RankPart>> parts;        // [ranks], without models; empty: there is one rank
};

// Makes the backend: starts threads, unless the options bring an executor, and opens the device. Precondition: `options` come from
// resolve_options(). Errors: an instruction set, numerics or a device that do not exist here; no memory.
// `others`: the ranks in other processes, among which this one computes; nullptr: there are none.
[[nodiscard]] Result<Machine> make_backend(const EngineOptions& options, Communicator* others = nullptr);

// Makes a backend for planning, without threads and without opening a device. It computes sizes of memory, but no results.
[[nodiscard]] Result<Machine> make_planner(const EngineOptions& options);

}  // namespace tessera::detail
