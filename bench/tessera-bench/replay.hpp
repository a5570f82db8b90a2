// Serves the requests of a trace on an engine, as they arrive, through a scheduler that the calling thread drives.
#pragma once

#include <cstdint>
#include <functional>

#include <tessera/engine.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "serving_figures.hpp"
#include "trace.hpp"

namespace tessera::bench {

struct ReplayOptions {
  StepLimits limits;
  PolicyPtr policy;
  std::uint64_t max_waiting = 0;  // 0: any number
  tool::ServiceLevel level;
};

// Told after each step how many requests have ended.
using ReplayProgress = std::function<void(std::size_t ended)>;

// Prompts are made up: equal blocks of the trace are equal tokens, all others are different ones. Every request draws as
// many tokens as the trace says. What the engine's prefix index had before is forgotten. Times count from a request's
// arrival, also where a step held its submission up. Throws Interrupted after Ctrl-C, and Failure if a request fails;
// one that does not fit the engine is refused.
[[nodiscard]] tool::ServingFigures replay(const Engine& engine, const tool::Trace& trace, const ReplayOptions& options,
                                          const ReplayProgress& progress);

}  // namespace tessera::bench
