// Top-n-sigma: a cut in logit space that does not move with the temperature. Tang et al., "Top-n-sigma: Not All Logits
// Are You Need" (ACL 2025), section 3, algorithm 1.
#pragma once

#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the candidates whose logit is at least (best logit) - n * sigma. sigma is the standard deviation of the candidates' finite logits:
// the square root of the mean squared distance from their mean. The candidates keep their order.
struct TopNSigma {
  static constexpr std::string_view kName = "top-n-sigma";

  float n = 1.0f;  // > 0, finite

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
