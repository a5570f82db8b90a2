// XTC, "exclude top choices": now and then the most likely tokens are left out, so that a less worn word gets its turn.
// P. E. Weidmann's proposal (text-generation-webui, pull request 6335, 2024).
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// When it acts: of the candidates with a probability of at least `threshold`, all but the least likely one are removed
// (if at least min_keep are left). Order unchanged.
struct Xtc {
  static constexpr std::string_view kName = "XTC";

  XtcOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
