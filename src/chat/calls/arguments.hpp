// The arguments of one call, in the ways that CallSyntax names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/output_format.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/json/json.hpp>

namespace tessera::calls {

// A tool's schema: an object's, with no properties where the tool says nothing.
[[nodiscard]] Json parameters_of(const Json& function);

[[nodiscard]] Grammar json_arguments(const Json& schema, const JsonSchemaOptions& options);

// key_open KEY key_close value_open VALUE value_close, each; properties in their order. A value that may be a string is one as
// it is, with its length, pattern and format; no value has one of the markers.
[[nodiscard]] Grammar parameter_arguments(const Json& schema, const CallForm& form, const std::vector<std::string>& markers,
                                          const JsonSchemaOptions& options);

// mark<KEY>VALUE mark</KEY>, each; properties in their order.
[[nodiscard]] Grammar element_arguments(const Json& schema, const CallForm& form, const JsonSchemaOptions& options);

// A schema that every form can hold: the names of the properties, and of their values whether they may be strings.
[[nodiscard]] Json loosened(const Json& schema);

// (key=value, ...) as Python has it.
[[nodiscard]] Grammar python_arguments(const Json& schema, const JsonSchemaOptions& options);

// {key:value,...} with strings between <|"|>; none holds the region's end.
[[nodiscard]] Grammar brace_arguments(const Json& schema, std::string_view region_close, const JsonSchemaOptions& options);

}  // namespace tessera::calls
