// XTC, "exclude top choices": sometimes removes the most likely tokens, so that less common words get their turn.
// P. E. Weidmann's proposal (text-generation-webui, pull request 6335, 2024).
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Acts only on a share `probability` of the draws, chosen at random. Then, of the candidates whose probability is at least `threshold`,
// keeps only the least likely, and removes the more likely ones. Candidates below `threshold` stay. Removes none if fewer than min_keep
// candidates would be left. The candidates keep their order.
struct Xtc {
  static constexpr std::string_view kName = "XTC";

  XtcOptions options;

  [[nodiscard]] Status check() const noexcept;
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
