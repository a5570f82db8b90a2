// The sampler that the options ask for.
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/chat/reasoning_budget.hpp>
#include <tessera/grammar/matcher.hpp>

#include "options.hpp"

// Whether the text depends on the seed.
[[nodiscard]] bool draws(const Options& options);

// Throws UsageError where an option makes no sense.
[[nodiscard]] tessera::Sampler make_sampler(const Options& options, std::uint64_t seed,
                                            std::optional<tessera::Matcher> matcher = {},
                                            std::optional<tessera::ReasoningBudget> budget = {});

// Short, so that it can be typed again.
[[nodiscard]] std::uint64_t fresh_seed();
