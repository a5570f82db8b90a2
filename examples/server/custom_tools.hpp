// Custom tools of OpenAI's APIs, which take a text and no arguments: for the model they are functions with one text, `input`.
#pragma once

#include <optional>
#include <string>

#include <tessera/json/json.hpp>

#include "fields.hpp"

namespace server {

// The schema of a custom tool's parameters; without a pattern any text may be there.
[[nodiscard]] tessera::Json text_parameters(const std::string& pattern);
// A custom tool as templates know tools.
[[nodiscard]] tessera::Json custom_function(const std::string& name, const std::optional<std::string>& description);
// The pattern that an object with `syntax` and `definition` holds the text to; nullopt without a definition. A grammar that is no
// pattern is an ApiError.
[[nodiscard]] std::optional<std::string> custom_pattern(Fields& grammar);
// The text of a call's arguments, {"input": "..."}; of arguments that were cut, as far as they go.
[[nodiscard]] std::string custom_input(const std::string& arguments);

}  // namespace server
