// The command line of tessera-simulate.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cluster.hpp"

namespace tessera::simulate {

struct Options {
  std::string trace;                        // a file; empty: made up
  tool::MadeUpTrace made_up;
  double scale = 1.0, speed = 1.0;
  std::uint64_t most = 0;                   // requests of the trace; 0: all
  std::vector<std::string> policies = {"fcfs"}, batchings = {"continuous"};
  std::uint32_t replicas = 1;
  std::string router = "round-robin";
  std::string costs;                        // "fixed=2e-3,key=1e-8"
  std::uint64_t kv_per_token = 0, kv_budget = 0;
  std::uint32_t page_tokens = 32;
  double file_rate = 0.0;                   // bytes a second
  double step_ms = 50.0;
  StepLimits limits;
  std::uint64_t max_waiting = 0;
  double slo_ttft_ms = 2000.0, slo_tpot_ms = 200.0;
  bool json = false;
};

void add_options(CLI::App& app, Options& options);

// What the options' texts mean. Errors say which option is wrong.
[[nodiscard]] Result<CostModel> costs_of(const std::string& text);
[[nodiscard]] PolicyPtr policy_of(std::string_view name);  // nullptr: there is no such policy
[[nodiscard]] std::optional<Batching> batching_of(std::string_view name) noexcept;

}  // namespace tessera::simulate
