#include "fields/closed_schema.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace server {

using tessera::Json;

namespace {

constexpr std::array<std::string_view, 9> kCombining = {
    "allOf", "not", "if", "unevaluatedProperties", "dependentSchemas", "patternProperties", "propertyNames", "dependencies", "minProperties"};

// Keys of JSON Schema under which further schemas are found. kSchemas: the value is a schema or a list of schemas. kNamed: the value is an
// object, each member of which is a schema.
constexpr std::array<std::string_view, 6> kSchemas = {"items", "prefixItems", "anyOf", "oneOf", "additionalProperties", "contains"};
constexpr std::array<std::string_view, 3> kNamed = {"properties", "$defs", "definitions"};

template <class List>
bool has(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// Calls `see` with this schema and with every schema within it.
template <class See>
void walk(Json& schema, const See& see) {
  if (schema.elements() != nullptr) {
    for (Json& each : *schema.elements()) walk(each, see);
    return;
  }
  if (schema.members() == nullptr) return;
  see(schema);
  for (auto& [key, value] : *schema.members()) {
    if (has(kSchemas, key)) walk(value, see);
    if (!has(kNamed, key) || value.members() == nullptr) continue;
    for (auto& [name, inner] : *value.members()) walk(inner, see);
  }
}

}  // namespace

Json closed_schema(const Json& schema) {
  Json closed = schema;
  bool combines = false;
  walk(closed, [&](const Json& each) {
    for (const std::string_view name : kCombining) combines = combines || each.find(name) != nullptr;
    // If properties stand beside a choice, each branch of the choice sees all of these properties, and a closed branch would refuse them.
    const bool chooses = each.find("anyOf") != nullptr || each.find("oneOf") != nullptr || each.find("$ref") != nullptr;
    combines = combines || (chooses && each.find("properties") != nullptr);
  });
  if (combines) return schema;
  walk(closed, [](Json& each) {
    if (each.find("properties") != nullptr && each.find("additionalProperties") == nullptr) each.set("additionalProperties", false);
  });
  return closed;
}

}  // namespace server
