// Moves the keys and values of tokens to lower positions in a sequence, when tokens before them are removed. A key was rotated by its
// position when it was written (rope; Su et al. 2021). Rotating it back by the difference makes it a key of the new position, up to
// rounding.
#pragma once

#include <cstdint>
#include <span>

#include <tessera/extend/kv/kv_view.hpp>

#include "backend/backend.hpp"

namespace tessera::cpu {

// Moves the keys and values of one layer's KV head from the positions move.from on to the positions move.to on. `turn`: the rotation from
// backend::turn_back(rope, move.from - move.to); empty without rope.
void move_tokens(const KvView& kv, std::size_t layer, std::size_t head, const backend::KvMove& move,
                 const backend::RopeTable& rope, std::span<const float> turn) noexcept;

}  // namespace tessera::cpu
