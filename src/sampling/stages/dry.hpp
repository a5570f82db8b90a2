// DRY, "don't repeat yourself": a penalty for the token that would continue a repeated sequence, growing with the
// sequence. P. E. Weidmann's proposal (text-generation-webui, pull request 5677, 2024).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Lowers the logit of each token t that would continue a repeated sequence: if the last n counted tokens occurred before, t followed there,
// and n >= allowed_length, the logit is lowered by multiplier * base^(n - allowed_length). n is the length of the longest repeat that t
// would continue. A breaker (a token of DryOptions) ends a repeat and is never penalised. The time is linear in last_n (Z-algorithm;
// Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.3). Order unchanged.
class Dry {
 public:
  static constexpr std::string_view kName = "DRY";

  [[nodiscard]] static Result<Dry> make(const DryOptions& options) noexcept;
  Status operator()(Candidates& candidates, const Context& context);

 private:
  DryOptions options_;             // without its breakers, which are in breakers_
  std::vector<Token> breakers_;    // ascending, each once
  std::vector<std::uint32_t> match_;  // scratch, [last_n of the counted tokens]; grows by doubling
};

}  // namespace tessera::sampling
