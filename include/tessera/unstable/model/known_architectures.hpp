// Facts that tessera knows about an architecture without a model's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// Returns which layers have the sliding window, in a model that has one and whose general.architecture is `architecture`. If the result is a
// number n above 0: every n-th layer sees all tokens, and the other layers have the window. If it is 0: all layers have the window. If it is
// nullopt: tessera does not know the architecture.
[[nodiscard]] std::optional<std::uint32_t> full_attention_period(std::string_view architecture) noexcept;

}  // namespace tessera
