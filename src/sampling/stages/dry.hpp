// DRY, "don't repeat yourself": a penalty for a token that would continue a repeated sequence. The penalty grows with the
// length of the sequence. P. E. Weidmann's proposal (text-generation-webui, pull request 5677, 2024).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>

namespace tessera::sampling {

// Lowers the logit of each token t that would continue a repeat: the last n tokens have occurred before, followed by t. n is the length of
// the longest such repeat. If n >= allowed_length, the logit is lowered by multiplier * base^(n - allowed_length). Repeats are searched in
// the answer or in the whole history (DryOptions::counted), in the last last_n tokens. A breaker (a token of DryOptions) ends a repeat and
// is never penalised. The time is linear in last_n (Z-algorithm; Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.3). The
// candidates keep their order.
class Dry {
 public:
  static constexpr std::string_view kName = "DRY";

  [[nodiscard]] static Result<Dry> make(const DryOptions& options) noexcept;
  Status operator()(Candidates& candidates, const Context& context);

 private:
  DryOptions options_;             // the breakers are in breakers_ instead
  std::vector<Token> breakers_;    // ascending, each once
  std::vector<std::uint32_t> match_;  // scratch, [last_n of the counted tokens]; grows by doubling
};

}  // namespace tessera::sampling
