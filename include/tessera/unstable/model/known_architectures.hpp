// Facts that tessera knows about an architecture without a model's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// Returns which layers of a model have the sliding window, if the model has one and its general.architecture is `architecture`. n above 0:
// every n-th layer sees all tokens, and the other layers have the window. 0: all layers have the window. nullopt: tessera does not know the
// architecture.
[[nodiscard]] std::optional<std::uint32_t> full_attention_period(std::string_view architecture) noexcept;

}  // namespace tessera
