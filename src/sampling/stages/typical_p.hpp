// Locally typical sampling. Meister, Pimentel, Wiher, Cotterell, "Locally Typical Sampling" (TACL 2023), section 4.
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the candidates whose surprise -ln p is nearest to the distribution's entropy (ties: the lower token ids), until
// their probabilities reach p. Order unchanged.
struct TypicalP {
  static constexpr std::string_view kName = "typical-p";

  float p = 1.0f;  // in (0, 1]; 1 keeps all
  std::size_t min_keep = 1;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
