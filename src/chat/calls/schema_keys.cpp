#include "chat/calls/schema_keys.hpp"

#include <algorithm>

#include "chat/calls/compose.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::calls {

void refuse(const std::string& path, std::string_view what) {
  throw Refusal{detail::error_at(ErrorCode::unsupported, detail::printable(path.empty() ? "/" : path),
                                 "this output format cannot hold a call to {}", what)};
}

std::vector<Property> properties_of(const Json& schema, const JsonSchemaOptions& options, const std::string& path) {
  // additionalProperties is accepted with any value, because the grammar only ever writes listed properties.
  check_keys(schema, {"type", "properties", "required", "additionalProperties", "$defs", "definitions"}, path, options);
  std::vector<Property> out;
  const Json* properties = schema.find("properties");
  const Json* required = schema.find("required");
  const Json::Array none;
  const Json::Array& wanted = required != nullptr && required->elements() != nullptr ? *required->elements() : none;
  std::size_t found = 0;
  if (properties != nullptr && properties->members() != nullptr) {
    for (const auto& [name, property] : *properties->members()) {
      const bool is_wanted = std::find(wanted.begin(), wanted.end(), Json(name)) != wanted.end();
      found += is_wanted ? 1 : 0;
      out.push_back({name, property, is_wanted, path + "/properties/" + name});
    }
  }
  if (found < wanted.size()) refuse(path + "/required", "properties that are not listed");
  return out;
}

std::optional<Json::Array> fixed_values(const Json& schema) {
  if (const Json* value = schema.find("const")) return Json::Array{*value};
  const Json* values = schema.find("enum");
  if (values == nullptr || values->elements() == nullptr) return std::nullopt;
  return *values->elements();
}

void check_keys(const Json& schema, std::initializer_list<std::string_view> known, const std::string& path,
                const JsonSchemaOptions& options) {
  if (schema.members() == nullptr || options.unsupported == JsonUnsupported::ignore) return;
  constexpr std::string_view says_nothing[] = {"title", "description", "default", "examples", "deprecated", "readOnly",
                                               "writeOnly", "$comment", "$schema", "$id"};
  for (const auto& [key, value] : *schema.members()) {
    const bool fine = std::find(known.begin(), known.end(), key) != known.end() ||
                      std::find(std::begin(says_nothing), std::end(says_nothing), key) != std::end(says_nothing);
    if (!fine) refuse(path + "/" + key, "this keyword; ignoring what is unsupported leaves it out");
  }
}

}  // namespace tessera::calls
