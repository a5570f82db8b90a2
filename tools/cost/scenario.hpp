// The file that tessera-cost reads: machines, models and a mix, in JSON. docs/howto/cost.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_model.hpp"

namespace tessera::cost {

struct Scenario {
  std::string currency;
  std::vector<std::pair<Model, ModelCost>> models;
  std::optional<Mix> mix;
};

// Reads a scenario. `folder`: base of the relative paths in the text. Errors (invalid_argument) name the member of the JSON.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& folder = {}) noexcept;
[[nodiscard]] Result<Scenario> read_scenario(const std::filesystem::path& path) noexcept;

// The rates that a model reached in `tessera-bench --json`, in tokens a second. prompt: the highest rate of the tests of prompts (prefill).
// answer: the highest rate of the tests of answers (decode, batch).
struct MeasuredRates {
  double prompt = 0, answer = 0;
};
[[nodiscard]] Result<MeasuredRates> measured_rates(std::string_view lines) noexcept;

}  // namespace tessera::cost
