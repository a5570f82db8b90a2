// What the text must be: --json-schema, --regex, --grammar, --choice.
#pragma once

#include <optional>

#include <tessera/grammar/grammar.hpp>
#include <tessera/grammar/matcher.hpp>

#include "options.hpp"

[[nodiscard]] bool is_constrained(const Options& options) noexcept;
// nullopt: anything. Throws UsageError for one that is wrong.
[[nodiscard]] std::optional<tessera::Grammar> read_constraint(const Options& options);

[[nodiscard]] tessera::Matcher make_matcher(const tessera::Grammar& grammar, const tessera::Tokenizer& tokenizer);
