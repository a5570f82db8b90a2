// Names of the model and texts of times in Ollama's API.
#pragma once

#include <string>
#include <string_view>

#include "api.hpp"

namespace server::ollama {

// Returns the model's name for lists: with ":latest", unless the name has a tag.
[[nodiscard]] std::string listed_name(const ServedModel& model);
// Reads `model`, or `name`, which older clients send. Returns the name for the answer: the request's, if it names the model, else the
// listed one. Errors: with Api::strict_model, another model's name is an ApiError of status 404.
[[nodiscard]] std::string read_name(Fields& fields, const Api& api);

// Return times as RFC 3339, in UTC.
[[nodiscard]] std::string time_text(std::int64_t unix_seconds);
[[nodiscard]] std::string time_now();

}  // namespace server::ollama
