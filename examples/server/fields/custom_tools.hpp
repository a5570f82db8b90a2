// Custom tools of OpenAI's APIs: the model calls them with one text instead of JSON arguments. tessera shows each custom tool to the model
// as a function with one parameter `input`, a string, and turns calls of the function back into calls of the custom tool.
#pragma once

#include <optional>
#include <string>

#include <tessera/json/json.hpp>

#include "fields/fields.hpp"

namespace server {

// Returns the schema of a custom tool's parameters. An empty pattern allows any text.
[[nodiscard]] tessera::Json text_parameters(const std::string& pattern);
// Returns a custom tool as a function tool, which chat templates can show. Its one parameter is `input`, a string.
[[nodiscard]] tessera::Json custom_function(const std::string& name, const std::optional<std::string>& description);
// Returns the regular expression that the tool's input must match. `grammar` is the tool's grammar: an object with `syntax` and
// `definition`. Returns nullopt if there is no definition. Throws ApiError if the grammar cannot become a regular expression.
[[nodiscard]] std::optional<std::string> custom_pattern(Fields& grammar);
// Returns the text in a call's arguments, {"input": "..."}. If the arguments were cut, returns the part of the text that is there.
[[nodiscard]] std::string custom_input(const std::string& arguments);

}  // namespace server
