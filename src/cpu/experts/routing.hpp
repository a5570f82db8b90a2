// Chooses a row's experts (backend::Routing), by plain code that is the same on every instruction set.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.hpp"

namespace tessera::cpu {

// Turns the router's `logits` [n_experts] of one row into scores, in place. Writes the chosen experts to `chosen` [n_used], ascending,
// and their weights to `weights` [n_used]. `bias` [n_experts] is added to the scores only to choose. The weights are multiplied by
// `scales` [n_experts]. `bias` and `scales` may be empty.
void route(const backend::Routing& how, std::span<const float> bias, std::span<const float> scales, std::span<float> logits,
           std::span<std::uint32_t> chosen, std::span<float> weights) noexcept;

}  // namespace tessera::cpu
