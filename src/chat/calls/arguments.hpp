// The arguments of one call, in the ways that CallSyntax names.
#pragma once

#include <string_view>

#include <tessera/chat/json.hpp>
#include <tessera/chat/output_format.hpp>
#include <tessera/grammar/grammar.hpp>

namespace tessera::calls {

// A tool's schema: an object's, with no properties where the tool says nothing.
[[nodiscard]] Json parameters_of(const Json& function);

[[nodiscard]] Grammar json_arguments(const Json& schema, const JsonSchemaOptions& options);

// key_open KEY key_close value_open VALUE value_close, each; properties in their order.
[[nodiscard]] Grammar parameter_arguments(const Json& schema, const CallForm& form, const JsonSchemaOptions& options);

// (key=value, ...) as Python has it.
[[nodiscard]] Grammar python_arguments(const Json& schema, const JsonSchemaOptions& options);

// {key:value,...} with strings between <|"|>; none holds the region's end.
[[nodiscard]] Grammar brace_arguments(const Json& schema, std::string_view region_close, const JsonSchemaOptions& options);

}  // namespace tessera::calls
