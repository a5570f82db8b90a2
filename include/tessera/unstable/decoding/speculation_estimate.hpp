// Estimates from measured times how much faster a generation gets by speculation, before it is tried (Leviathan, Kalman, Matias 2023,
// theorem 3.8 and corollary 3.9). One cycle drafts k tokens and computes them in one step. Each draft is accepted with probability a, if
// the drafts before it were accepted. Then a cycle gives on average
//
//   E = 1 + a + a^2 + ... + a^k = (1 - a^(k+1)) / (1 - a)
//
// tokens: the accepted drafts, and one more token that the step itself draws after the last of them. docs/explanation/speculation.md
// derives the formula.
//
//   auto estimate = tessera::estimate_speculation({.target_seconds = 0.05, .draft_seconds = 0.001, .acceptance = 0.7, .drafts = 4});
//   if (estimate) std::printf("%.2f times as fast\n", estimate->speedup);
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/core/result.hpp>

namespace tessera {

struct SpeculationCosts {
  double target_seconds = 0;             // time of a step without drafts
  double draft_seconds = 0;              // time of one drafted token
  std::optional<double> verify_seconds = {};  // time of a step with all drafts; nullopt: target_seconds, as if only reading the weights took time
  double acceptance = 0;                 // a, 0 to 1
  std::uint32_t drafts = 0;              // k, at most 64
};

struct SpeculationEstimate {
  double tokens = 0;         // E, the tokens of a cycle
  double cycle_seconds = 0;  // time of k drafts and a step
  double token_seconds = 0;
  double speedup = 0;        // target_seconds / token_seconds
  // The lowest acceptance at which speculation does not slow a generation down; nullopt: speculation slows it down even at 1.
  std::optional<double> break_even = {};
};

// Returns the estimate. Errors (invalid_argument): seconds that are negative or not finite, a target of 0 seconds, an acceptance outside
// [0, 1], too many drafts.
[[nodiscard]] Result<SpeculationEstimate> estimate_speculation(const SpeculationCosts& costs) noexcept;

}  // namespace tessera
