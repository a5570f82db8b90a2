// Constraints of the text: --json-schema, --regex, --grammar, --choice.
#pragma once

#include <optional>

#include <tessera/extend/grammar/matcher.hpp>
#include <tessera/grammar/grammar.hpp>

#include "options.hpp"

[[nodiscard]] bool is_constrained(const Options& options) noexcept;
// Returns the grammar of the constraint; nullopt without a constraint. Throws UsageError if the constraint is invalid.
[[nodiscard]] std::optional<tessera::Grammar> read_constraint(const Options& options);

[[nodiscard]] tessera::Matcher make_matcher(const tessera::Grammar& grammar, const tessera::Tokenizer& tokenizer);
