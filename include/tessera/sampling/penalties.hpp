// Penalties on tokens that the recent history holds. Repetition: Keskar et al., "CTRL" (2019), section 4.1, as Hugging
// Face applies it; frequency and presence: the OpenAI API reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <tessera/sampling/stage.hpp>

namespace tessera::sampling {

inline constexpr std::size_t kWholeHistory = std::numeric_limits<std::size_t>::max();

struct PenaltyOptions {
  float repetition = 1.0f;   // > 0; 1 = none
  float frequency = 0.0f;    // finite; 0 = none
  float presence = 0.0f;     // finite; 0 = none
  std::size_t last_n = 64;   // how much of the history counts; kWholeHistory = all of it
};

// For a token that occurs `count` > 0 times among the last n of the history: its logit is divided by `repetition` where
// positive, multiplied where not, then count * frequency + presence is taken off. Order unchanged.
struct Penalties {
  static constexpr std::string_view kName = "penalties";

  PenaltyOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
