// Serves the requests of a trace on an engine, as they arrive, through a scheduler that the calling thread drives.
#pragma once

#include <cstdint>
#include <functional>

#include <tessera/engine.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "serving/serving_figures.hpp"
#include "serving/trace.hpp"

namespace tessera::bench {

struct ReplayOptions {
  StepLimits limits;
  PolicyPtr policy;
  std::uint64_t max_waiting = 0;  // 0: any number
  tool::ServiceLevel level;
};

// Called after each step with the number of requests that have ended.
using ReplayProgress = std::function<void(std::size_t ended)>;

// Serves the trace and returns its figures. Prompts are made up: equal blocks of the trace get equal tokens, all other tokens differ. Every
// request draws exactly the number of tokens that the trace says. The engine's prefix index is emptied first. Times count from a request's
// arrival in the trace, even if a step delays its submission. A request that does not fit the engine is refused. Throws Interrupted after
// Ctrl-C, and Failure if a request fails.
[[nodiscard]] tool::ServingFigures replay(const Engine& engine, const tool::Trace& trace, const ReplayOptions& options,
                                          const ReplayProgress& progress);

}  // namespace tessera::bench
