// What speculation would bring, before it is tried (Leviathan, Kalman, Matias 2023, theorem 3.8 and corollary 3.9). A
// cycle drafts k tokens and computes them in one step. If each draft is accepted with chance a, a cycle gives
//
//   E = 1 + a + a^2 + ... + a^k = (1 - a^(k+1)) / (1 - a)
//
// tokens, since the step gives one of its own after the last accepted one. docs/speculation.md derives it.
#pragma once

#include <cstdint>
#include <optional>

#include <tessera/core/result.hpp>

namespace tessera {

struct SpeculationCosts {
  double target_seconds = 0;             // of a step without drafts
  double draft_seconds = 0;              // of one drafted token
  std::optional<double> verify_seconds = {};  // of a step with all drafts; none: target_seconds, as where weights are all the cost
  double acceptance = 0;                 // a, 0 to 1
  std::uint32_t drafts = 0;              // k, at most 64
};

struct SpeculationEstimate {
  double tokens = 0;         // E, of a cycle
  double cycle_seconds = 0;  // k drafts, and a step
  double token_seconds = 0;
  double speedup = 0;        // of target_seconds over token_seconds
  // The acceptance from which on it is no loss; none: not even 1 is enough.
  std::optional<double> break_even = {};
};

// Errors: seconds that are negative or not finite, a target of 0 seconds, an acceptance outside [0, 1], too many drafts.
[[nodiscard]] Result<SpeculationEstimate> estimate_speculation(const SpeculationCosts& costs) noexcept;

}  // namespace tessera
