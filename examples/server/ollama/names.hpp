// Names of models, and times as text, in Ollama's API.
#pragma once

#include <string>
#include <string_view>

#include "apis/api.hpp"

namespace server::ollama {

// Returns a name without ":latest" at its end. Both forms name the same model.
[[nodiscard]] std::string_view without_latest(std::string_view name);
// Returns the model's name for lists: with ":latest", unless the name has a tag.
[[nodiscard]] std::string listed_name(const std::string& id);
// Returns the name in the request: `model`, or `name`, which older clients send. Empty: the request names no model.
[[nodiscard]] std::string asked_name(Fields& fields);
// Returns the model's name for the answer: the name in the request if this is a name of the model; otherwise listed_name() of the model.
[[nodiscard]] std::string read_name(Fields& fields, const Api& api);

// Return times as RFC 3339, in UTC.
[[nodiscard]] std::string time_text(std::int64_t unix_seconds);
[[nodiscard]] std::string time_now();

}  // namespace server::ollama
