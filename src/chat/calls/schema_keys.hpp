// Keywords of a JSON Schema, for the call syntaxes that are not JSON.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/grammar/grammar.hpp>
#include <tessera/json/json.hpp>

namespace tessera::calls {

struct Property {
  std::string name;
  Json schema;
  bool required = false;
  std::string path;  // "/properties/city"
};

[[noreturn]] void refuse(const std::string& path, std::string_view what);

// Returns whether `type` is the schema's only type.
[[nodiscard]] bool is_type(const Json& schema, std::string_view type);

// Returns the properties of an object, in the order in which they stand. Other keywords are refused or left out, as the options say.
[[nodiscard]] std::vector<Property> properties_of(const Json& schema, const JsonSchemaOptions& options,
                                                  const std::string& path = {});

// Returns the values of enum or const; nullopt if the schema has neither.
[[nodiscard]] std::optional<Json::Array> fixed_values(const Json& schema);

// Refuses a schema with keywords other than `known`, unless the options ignore them. Keywords that say nothing about a value (title, ...)
// are allowed.
void check_keys(const Json& schema, std::initializer_list<std::string_view> known, const std::string& path,
                const JsonSchemaOptions& options);

}  // namespace tessera::calls
