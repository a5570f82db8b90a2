// How Ollama's clients name the model, and how they write times.
#pragma once

#include <string>
#include <string_view>

#include "api.hpp"

namespace server::ollama {

// The model's name as lists have it: with ":latest", unless it has a tag of its own.
[[nodiscard]] std::string listed_name(const ServedModel& model);
// Reads `model`, or `name` as older clients send it. Returns the name for the answer: as the request says it where that names the
// model, else the listed one. Errors: with Api::strict_model another model's name is an ApiError of status 404.
[[nodiscard]] std::string read_name(Fields& fields, const Api& api);

// Times as RFC 3339, in UTC.
[[nodiscard]] std::string time_text(std::int64_t unix_seconds);
[[nodiscard]] std::string time_now();

}  // namespace server::ollama
