// What a program that serves a trace is asked for: the requests, how they are scheduled, and what counts as served well.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/unstable/scheduler/plan_step.hpp>

#include "serving_figures.hpp"
#include "trace.hpp"

namespace tessera::tool {

struct ServingOptions {
  std::string trace;         // a file; empty: made up
  MadeUpTrace made_up;
  double scale = 1.0, speed = 1.0;
  std::uint64_t most = 0;    // requests of the trace; 0: all, or 1,000 made up
  std::vector<PolicyPtr> policies = {first_come()};            // side by side, with each of
  std::vector<Batching> batchings = {Batching::continuous};
  StepLimits limits;         // but for `batching`
  std::uint64_t max_waiting = 0;  // 0: any number
  ServiceLevel level;
};

// Mistakes in their values are CLI::ValidationErrors. Their groups' names, for what goes with them:
inline constexpr std::string_view kTraceGroup = "Requests of a trace", kSchedulingGroup = "How they are served",
                                  kLevelGroup = "What counts as served well";
void add_trace_options(CLI::App& app, ServingOptions& options);
void add_scheduling_options(CLI::App& app, ServingOptions& options);
void add_level_options(CLI::App& app, ServingOptions& options);

// The requests, scaled. Those without a deadline have the one that the service level gives them.
[[nodiscard]] Result<Trace> trace_of(const ServingOptions& options);

[[nodiscard]] std::string_view to_string(Batching batching) noexcept;

}  // namespace tessera::tool
