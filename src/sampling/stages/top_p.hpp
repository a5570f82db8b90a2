// Top-p, or nucleus sampling. Holtzman et al., "The Curious Case of Neural Text Degeneration" (ICLR 2020), section 3.1.
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the smallest set of best candidates whose probabilities reach p, in the present order.
struct TopP {
  static constexpr std::string_view kName = "top-p";

  float p = 1.0f;  // in (0, 1]; 1 keeps all
  std::size_t min_keep = 1;

  [[nodiscard]] Status check() const noexcept;
  [[nodiscard]] SampleStep step() const noexcept {
    return {.kind = SampleStepKind::top_p, .value = p, .count = min_keep};
  }
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
