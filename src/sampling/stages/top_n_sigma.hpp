// Top-n-sigma: keeps the candidates whose logit is within n standard deviations of the best logit. A temperature scales logits and standard
// deviation alike, so it does not change which candidates are kept. Tang et al., "Top-n-sigma: Not All Logits Are You Need" (ACL 2025),
// section 3, algorithm 1.
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
