// The sampler that the options ask for.
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/extend/chat/reasoning_budget.hpp>
#include <tessera/extend/grammar/matcher.hpp>

#include "options.hpp"

// Returns whether the text depends on the seed.
[[nodiscard]] bool draws(const Options& options);

// Makes the sampler. Throws UsageError if an option makes no sense.
[[nodiscard]] tessera::Sampler make_sampler(const Options& options, std::uint64_t seed,
                                            std::optional<tessera::Matcher> matcher = {},
                                            std::optional<tessera::ReasoningBudget> budget = {});

// Returns a random seed, short enough for a user to type it again.
[[nodiscard]] std::uint64_t fresh_seed();
