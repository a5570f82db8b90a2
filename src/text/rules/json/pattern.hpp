// Reads the pattern that a rule of a tokenizer.json looks for: {"String": " "} or {"Regex": "\\s+"}.
#pragma once

#include "text/pipeline/regex.hpp"
#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

[[nodiscard]] Result<Regex> read_pattern(const RuleReader& rule, std::string_view key);

}  // namespace tessera::detail
