// Keys that have the order of candidates: a better candidate has a higher key. A higher logit is better; among equal logits a lower token
// id is better. The upper half of a key comes from the logit, the lower half from the token.
#pragma once

#include <cstdint>

#include <tessera/core/token.hpp>

#include "sampling/loops.hpp"

namespace tessera::sampling {

// Returns loops::rank() as an unsigned number of the same order.
[[nodiscard]] inline std::uint32_t order_of_rank(std::int32_t rank) noexcept {
  return static_cast<std::uint32_t>(rank) ^ 0x80000000u;
}

[[nodiscard]] inline std::uint64_t order_key(float logit, Token token) noexcept {
  return (std::uint64_t{order_of_rank(loops::rank(logit))} << 32) | ~static_cast<std::uint32_t>(token);
}

}  // namespace tessera::sampling
