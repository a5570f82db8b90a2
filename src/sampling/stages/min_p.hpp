// Min-p: removes candidates that are much less likely than the best one. Nguyen et al., "Turning Up the Heat: Min-p Sampling for Creative
// and Coherent LLM Outputs" (ICLR 2025), section 3.
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the candidates at least p times as probable as the best one: logit >= best logit + ln p. Order unchanged.
struct MinP {
  static constexpr std::string_view kName = "min-p";

  float p = 0.0f;  // in [0, 1]; 0 keeps all
  std::size_t min_keep = 1;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
