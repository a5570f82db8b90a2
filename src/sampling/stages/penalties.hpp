// Penalties on tokens that occur in the answer or in the whole history. Repetition: Keskar et al., "CTRL" (2019), section 4.1, as
// Hugging Face applies it; frequency and presence: the OpenAI API reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Lowers the logit of each token that has occurred lately: `count` > 0 times among the last n tokens of the answer or of the whole history
// (PenaltyOptions). First, divides the logit by `repetition` if the logit is positive, or multiplies it by `repetition` if not. Then
// subtracts count * frequency + presence. The candidates keep their places, so a list that was sorted by logit may no longer be sorted.
struct Penalties {
  static constexpr std::string_view kName = "penalties";

  PenaltyOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
