// Top-k: keeps a fixed number of candidates. Fan, Lewis, Dauphin, "Hierarchical Neural Story Generation" (ACL 2018), section 5.4.
#pragma once

#include <cstddef>
#include <string_view>

#include <tessera/extend/sampling/stage.hpp>

namespace tessera::sampling {

// Keeps exactly the k best candidates (ties at the edge: the lower token ids), in the present order. 0 keeps all.
struct TopK {
  static constexpr std::string_view kName = "top-k";

  std::size_t k = 0;

  [[nodiscard]] SampleStep step() const noexcept { return {.kind = SampleStepKind::top_k, .count = k}; }
  void operator()(Candidates& candidates, const Context& context) const noexcept;
};

}  // namespace tessera::sampling
