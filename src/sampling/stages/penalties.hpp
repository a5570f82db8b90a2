// Penalties on tokens that the answer, or the whole history, holds. Repetition: Keskar et al., "CTRL" (2019), section 4.1, as Hugging
// Face applies it; frequency and presence: the OpenAI API reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// For a token that occurs `count` > 0 times among the last n of the counted tokens: its logit is divided by `repetition` where
// positive, multiplied where not, then count * frequency + presence is taken off. Order unchanged.
struct Penalties {
  static constexpr std::string_view kName = "penalties";

  PenaltyOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
