// XTC, "exclude top choices": now and then the most likely tokens are left out, so that a less worn word gets its turn.
// P. E. Weidmann's proposal (text-generation-webui, pull request 6335, 2024).
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/sampling/stage.hpp>

namespace tessera::sampling {

struct XtcOptions {
  float probability = 0.5f;  // how often it acts, in [0, 1]; decided by Context::uniform(0)
  float threshold = 0.1f;    // in (0, 1]; above 0.5 it never acts, as no two tokens can reach it
  std::size_t min_keep = 1;
};

// When it acts: of the candidates with a probability of at least `threshold`, all but the least likely one are removed
// (if at least min_keep are left). Order unchanged.
struct Xtc {
  static constexpr std::string_view kName = "XTC";

  XtcOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
