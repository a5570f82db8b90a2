// The order of candidates as numbers: a higher logit is better; among equal logits a lower token id is better.
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
