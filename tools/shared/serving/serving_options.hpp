// The options of programs that serve a trace: the requests, their scheduling, and the service level.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <tessera/unstable/scheduler/plan_step.hpp>

#include "serving/serving_figures.hpp"
#include "serving/trace.hpp"

namespace tessera::tool {

struct ServingOptions {
  std::string trace;         // path of a trace; empty: the trace is made up
  MadeUpTrace made_up;
  double scale = 1.0, speed = 1.0;
  std::uint64_t most = 0;    // the most requests; 0: all requests of the file, or 1,000 made-up ones
  std::vector<PolicyPtr> policies = {first_come()};            // each policy is combined with each of `batchings`
  std::vector<Batching> batchings = {Batching::continuous};
  StepLimits limits;         // `batching` is not used
  std::uint64_t max_waiting = 0;  // 0: any number
  ServiceLevel level;
};

// Wrong values throw CLI::ValidationError. The following names of option groups serve a program's further options.
inline constexpr std::string_view kTraceGroup = "Requests of a trace", kSchedulingGroup = "How they are served",
                                  kLevelGroup = "What counts as served well";
void add_trace_options(CLI::App& app, ServingOptions& options);
void add_scheduling_options(CLI::App& app, ServingOptions& options);
void add_level_options(CLI::App& app, ServingOptions& options);

// Returns the requests, scaled by the options. A request without a deadline gets the deadline of the service level.
[[nodiscard]] Result<Trace> trace_of(const ServingOptions& options);

[[nodiscard]] std::string_view to_string(Batching batching) noexcept;

}  // namespace tessera::tool
