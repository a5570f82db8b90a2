// The layers at a model's two ends in a KV type of their own. What the first layers keep is read by all others, and the last
// ones are next to the logits: a type that costs little more of a few layers can take much of a narrow type's error.
//
// Counted are layers that keep keys and values: not recurrent ones, not layers that share another one's (these have its type),
// and not MTP heads. So of a model whose layers 0 and 2 are recurrent, {int8, 1, 1} are layer 1 and the last that attends.
#pragma once

#include <compare>
#include <cstdint>

#include <tessera/core/dtype.hpp>

namespace tessera {

struct WideLayers {
  DType dtype = DType::automatic;  // automatic: none are
  std::uint32_t first = 1, last = 1;

  friend bool operator==(const WideLayers&, const WideLayers&) noexcept = default;
  friend auto operator<=>(const WideLayers&, const WideLayers&) noexcept = default;
};

}  // namespace tessera
