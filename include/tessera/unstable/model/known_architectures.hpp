// Facts that tessera knows about an architecture without a model's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// Returns which layers see all tokens, in models of this general.architecture that have a sliding window. A result n: every n-th layer sees
// all tokens, and the other layers have the window. 0: all layers have the window. nullopt: tessera does not know the architecture.
[[nodiscard]] std::optional<std::uint32_t> full_attention_period(std::string_view architecture) noexcept;

}  // namespace tessera
