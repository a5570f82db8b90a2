// Durations as Ollama's keep_alive writes them.
#pragma once

#include <optional>
#include <string_view>

namespace server {

// Returns the seconds of a duration in Go's form ("1h30m", "-1m", "1.5s"), or of a number without a unit. nullopt: the text is no duration.
[[nodiscard]] std::optional<double> duration_of(std::string_view text);

}  // namespace server
