// The scheduler's handle, and requests as JSON.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <tessera/scheduler/scheduler.hpp>

#include "engine.hpp"
#include "json_options.hpp"
#include "structs.hpp"

struct tessera_scheduler : tessera::c::Tagged<tessera::c::Kind::scheduler> {
  tessera_scheduler(tessera::c::EngineStatePtr of, tessera::Scheduler with) noexcept
      : engine(std::move(of)), scheduler(std::move(with)) {}
  tessera::c::EngineStatePtr engine;
  tessera::Scheduler scheduler;
  std::optional<tessera::Driver> driver;  // ends before the scheduler
};

namespace tessera::c {

// Reads a request of {"max_tokens": ..., "sampler": {...}, ...}.
[[nodiscard]] Request read_request(EngineState& engine, const Value& value);

}  // namespace tessera::c
