// Grammars of the arguments of one call, in each of the ways in which models write them (CallSyntax).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/chat/output_format.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/json/json.hpp>

namespace tessera::calls {

// Returns the JSON Schema of a tool's arguments. For a tool without a schema, returns the schema of an object without properties.
[[nodiscard]] Json parameters_of(const Json& function);

// Returns the grammar of arguments that are written as JSON and satisfy the schema.
[[nodiscard]] Grammar json_arguments(const Json& schema, const JsonSchemaOptions& options);

// Returns the grammar of arguments that are written as parameters, one after another in the order of the schema's properties: key_open
// KEY key_close value_open VALUE value_close for each (the markers of CallForm). If a value may be a string, it is written as plain text
// without quotes; the schema's length, pattern and format apply to this text. No value may contain one of `markers`.
[[nodiscard]] Grammar parameter_arguments(const Json& schema, const CallForm& form, const std::vector<std::string>& markers,
                                          const JsonSchemaOptions& options);

// Returns the grammar of arguments that are written as elements: mark<KEY>VALUE mark</KEY> for each, in the order of the properties.
[[nodiscard]] Grammar element_arguments(const Json& schema, const CallForm& form, const JsonSchemaOptions& options);

// Returns a looser schema, for a schema that a call syntax cannot express. It keeps only properties with plain names (ASCII letters,
// digits, '_', '.', '-'), and of each property only that its value may be a string, or that it is a list. Every call syntax can express
// the looser schema.
[[nodiscard]] Json loosened(const Json& schema);

// Returns the grammar of arguments that are written as in Python: (key=value, ...).
[[nodiscard]] Grammar python_arguments(const Json& schema, const JsonSchemaOptions& options);

// Returns the grammar of arguments that are written as {key:value,...}, with each string between two <|"|> (Gemma). No string may contain
// `region_close`, the marker that ends the region of calls.
[[nodiscard]] Grammar brace_arguments(const Json& schema, std::string_view region_close, const JsonSchemaOptions& options);

}  // namespace tessera::calls
