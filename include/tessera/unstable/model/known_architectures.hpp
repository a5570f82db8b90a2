// What of an architecture can be said without a model of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

// Of a model of this general.architecture that has a sliding window: n, every n-th layer sees everything; 0, all layers
// have the window. nullopt: tessera knows no such architecture.
[[nodiscard]] std::optional<std::uint32_t> full_attention_period(std::string_view architecture) noexcept;

}  // namespace tessera
