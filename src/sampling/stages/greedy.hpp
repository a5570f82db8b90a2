// Greedy decoding: always the best token.
#pragma once

#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps the candidate with the highest logit; among equal logits the lowest token id.
struct Greedy {
  static constexpr std::string_view kName = "greedy";

  [[nodiscard]] SampleStep step() const noexcept { return {.kind = SampleStepKind::greedy}; }
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
