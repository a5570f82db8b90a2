// Locally typical sampling: prefers tokens whose information is near the average. Meister, Pimentel, Wiher, Cotterell, "Locally Typical
// Sampling" (TACL 2023), section 4.
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the most typical candidates, until their probabilities sum to at least p. A candidate is the more typical, the nearer its surprise
// -ln q (q: its probability) is to the entropy of the distribution, which is the mean surprise. Of two equally typical candidates, the one
// with the lower token id is kept first. The kept candidates stay in their order.
struct TypicalP {
  static constexpr std::string_view kName = "typical-p";

  float p = 1.0f;  // in (0, 1]; 1 keeps all
  std::size_t min_keep = 1;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
