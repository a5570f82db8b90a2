// Facts about an architecture that need no model of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// Returns how models of this general.architecture use a sliding window, if they have one. n: every n-th layer sees all tokens; 0: all
// layers have the window. nullopt: tessera does not know the architecture.
[[nodiscard]] std::optional<std::uint32_t> full_attention_period(std::string_view architecture) noexcept;

}  // namespace tessera
