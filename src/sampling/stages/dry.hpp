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

// If the last n >= allowed_length counted tokens occurred before, and token t followed there, the logit of t is lowered by
// multiplier * base^(n - allowed_length). n is the length of the longest repeat that t would continue; a repeat holds no breaker, and
// breakers are never penalised. Linear in last_n (Z-algorithm; Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.3). Order
// unchanged.
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
