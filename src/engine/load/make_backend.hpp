// From options to what an engine computes with: the one place that knows which backends there are.
#pragma once

#include <memory>

#include <tessera/engine.hpp>
#include <tessera/extend/core/executor.hpp>

#include "backend/backend.hpp"

namespace tessera::detail {

// A backend and the threads that it uses.
struct Machine {
  std::shared_ptr<Executor> executor;
  std::unique_ptr<backend::Backend> backend;
};

// `options` as resolve_options() makes them. Starts threads, unless the options bring an executor, and opens the device.
// Errors: an instruction set, numerics or a device that are not there; no memory.
[[nodiscard]] Result<Machine> make_backend(const EngineOptions& options);

// The same backend, to be asked for sizes alone: it has no threads and no device, and computes nothing.
[[nodiscard]] Result<Machine> make_planner(const EngineOptions& options);

}  // namespace tessera::detail
