// The output of tessera-cost: tables for people, JSON for programs.
#pragma once

#include <string>

#include "scenario.hpp"

namespace tessera::cost {

// Returns the tables. Errors: those of cost_of() for the mix.
[[nodiscard]] Result<std::string> text_of(const Scenario& scenario);
// Returns one line of JSON.
[[nodiscard]] Result<std::string> json_of(const Scenario& scenario);

}  // namespace tessera::cost
