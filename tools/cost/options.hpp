// The command line of tessera-cost.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "scenario.hpp"

namespace tessera::cost {

struct Options {
  std::string file;           // a scenario; empty: the options below make one
  Model model{.name = "model"};
  std::string speculate, tiers, save, request;
  std::string currency = "$";
  double busy = 100, again = 0, sampled = 0;  // percent
  bool json = false;
};

void add_options(CLI::App& app, Options& options);

// Returns the scenario that the options describe. Errors (invalid_argument) name the option.
[[nodiscard]] Result<Scenario> scenario_of(const Options& options);

}  // namespace tessera::cost
