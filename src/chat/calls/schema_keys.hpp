// What of a JSON Schema the syntaxes look at that are not JSON.
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

// "type": is it this one alone?
[[nodiscard]] bool is_type(const Json& schema, std::string_view type);

// Those of an object, in the order in which they stand. Other keywords are refused or left out, as the options say.
[[nodiscard]] std::vector<Property> properties_of(const Json& schema, const JsonSchemaOptions& options,
                                                  const std::string& path = {});

// The values of enum or const, if there are any.
[[nodiscard]] std::optional<Json::Array> fixed_values(const Json& schema);

// That a schema has no other keywords than these, and those that say nothing about a value.
void check_keys(const Json& schema, std::initializer_list<std::string_view> known, const std::string& path,
                const JsonSchemaOptions& options);

}  // namespace tessera::calls
