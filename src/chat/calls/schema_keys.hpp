// Reads the keywords of a JSON Schema, for call syntaxes whose arguments are not written as JSON.
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
  std::string path;  // the property's place in the schema, such as "/properties/city"
};

[[noreturn]] void refuse(const std::string& path, std::string_view what);

// Returns the properties of an object, in the schema's order. A keyword that limits the object in another way (minProperties, for
// example) is an error or is ignored, as the options say. Fails if `required` names a property that the schema does not list.
[[nodiscard]] std::vector<Property> properties_of(const Json& schema, const JsonSchemaOptions& options,
                                                  const std::string& path = {});

// Returns the values that enum or const lists; nullopt if the schema has neither.
[[nodiscard]] std::optional<Json::Array> fixed_values(const Json& schema);

// Fails if the schema has a keyword that is not in `known`, because the syntax could not enforce it. Exceptions: keywords that do not
// limit values (title, ...) are always allowed; other keywords are ignored if the options say so. `path`: the schema's place, for the
// error.
void check_keys(const Json& schema, std::initializer_list<std::string_view> known, const std::string& path,
                const JsonSchemaOptions& options);

}  // namespace tessera::calls
