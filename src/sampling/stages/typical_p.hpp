// Locally typical sampling. Meister, Pimentel, Wiher, Cotterell, "Locally Typical Sampling" (TACL 2023), section 4.
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the most typical candidates: a candidate is typical if its surprise -ln q (q: its probability) is near the distribution's entropy.
// Adds candidates, the most typical first (of equally typical ones the lower token id), until their probabilities sum to p. The kept
// candidates stay in their order.
struct TypicalP {
  static constexpr std::string_view kName = "typical-p";

  float p = 1.0f;  // in (0, 1]; 1 keeps all
  std::size_t min_keep = 1;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
