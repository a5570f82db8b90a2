// Which experts a row takes (backend::Routing), in plain code: the same on every instruction set.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.hpp"

namespace tessera::cpu {

// `logits` [n_experts] become scores. `chosen` [n_used]: experts, ascending; `weights` [n_used]: theirs. `bias`: of the
// choice [n_experts], or empty; likewise `scales`: of the weights.
void route(const backend::Routing& how, std::span<const float> bias, std::span<const float> scales, std::span<float> logits,
           std::span<std::uint32_t> chosen, std::span<float> weights) noexcept;

}  // namespace tessera::cpu
