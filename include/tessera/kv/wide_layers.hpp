// Wide layers: the first and the last layers of a model, if their keys and values have a type of more bits than those of the layers
// between. Purpose: rounding errors in the first layers spread to all later layers, and errors in the last layers act on the logits
// directly. So a wider type in these few layers costs little memory, and can remove much of the error that the narrow type of the other
// layers makes.
//
// Only layers that keep keys and values are counted. Not counted: recurrent layers, MTP heads, and layers that read an earlier layer's keys
// and values (their type is that layer's). Example: in a model whose layers 0 and 2 are recurrent, {.dtype = DType::int8, .first = 1, .last
// = 1} makes layer 1 and the last attention layer wide.
#pragma once

#include <compare>
#include <cstdint>

#include <tessera/core/dtype.hpp>

namespace tessera {

struct WideLayers {
  DType dtype = DType::automatic;     // KV type of the wide layers; automatic: there are no wide layers
  std::uint32_t first = 1, last = 1;  // number of wide layers at the model's beginning, and at its end

  friend bool operator==(const WideLayers&, const WideLayers&) noexcept = default;
  friend auto operator<=>(const WideLayers&, const WideLayers&) noexcept = default;
};

}  // namespace tessera
