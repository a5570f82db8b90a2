// The arguments of one call, in the ways that CallSyntax names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/output_format.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/json/json.hpp>

namespace tessera::calls {

// Returns the schema of a tool's arguments: an object's, without properties if the tool gives none.
[[nodiscard]] Json parameters_of(const Json& function);

// Returns the grammar of arguments as JSON that the schema accepts.
[[nodiscard]] Grammar json_arguments(const Json& schema, const JsonSchemaOptions& options);

// Returns the grammar of parameters: key_open KEY key_close value_open VALUE value_close for each, in the order of the properties. A value
// that may be a string stands as it is, with its length, pattern and format. No value holds one of the markers.
[[nodiscard]] Grammar parameter_arguments(const Json& schema, const CallForm& form, const std::vector<std::string>& markers,
                                          const JsonSchemaOptions& options);

// Returns the grammar of elements: mark<KEY>VALUE mark</KEY> for each, in the order of the properties.
[[nodiscard]] Grammar element_arguments(const Json& schema, const CallForm& form, const JsonSchemaOptions& options);

// Returns a looser schema that every form can hold: the names of the properties, and whether their values may be strings.
[[nodiscard]] Json loosened(const Json& schema);

// Returns the grammar of Python's arguments: (key=value, ...).
[[nodiscard]] Grammar python_arguments(const Json& schema, const JsonSchemaOptions& options);

// Returns the grammar of {key:value,...} with strings between <|"|>. No string holds the region's end.
[[nodiscard]] Grammar brace_arguments(const Json& schema, std::string_view region_close, const JsonSchemaOptions& options);

}  // namespace tessera::calls
