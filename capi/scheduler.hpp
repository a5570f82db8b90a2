// The scheduler's handle, and requests as JSON.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <tessera/scheduler/scheduler.hpp>

#include "engine.hpp"
#include "options/json_options.hpp"
#include "values/structs.hpp"

struct tessera_scheduler : tessera::c::Tagged<tessera::c::Kind::scheduler> {
  tessera_scheduler(tessera::c::EngineStatePtr of, tessera::Scheduler with) noexcept
      : engine(std::move(of)), scheduler(std::move(with)) {}
  tessera::c::EngineStatePtr engine;
  tessera::Scheduler scheduler;
  std::optional<tessera::Driver> driver;  // destroyed before the scheduler
};

namespace tessera::c {

// Marks this thread, while the object lives, as running a callback of the host for a scheduler.
class InCallback {
 public:
  InCallback() noexcept { ++depth_; }
  ~InCallback() { --depth_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  // Refuses `function` in a callback, because the function would wait for the step that runs the callback. Error:
  // invalid_state.
  static void refuse(std::string_view function);

 private:
  static thread_local int depth_;
};

// Reads a request from {"max_tokens": ..., "sampler": {...}, ...}.
[[nodiscard]] Request read_request(EngineState& engine, const Value& value);

}  // namespace tessera::c
