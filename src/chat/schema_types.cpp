#include "chat/schema_types.hpp"

#include <algorithm>
#include <string_view>

namespace tessera {
namespace {

constexpr int kDeepestSchema = 16;
constexpr int kMostSchemas = 500;  // limit for the number of schemas that are read to find the types of one value

unsigned types_of(const Json& schema, const Json& root, int depth, int& left);

unsigned type_called(const Json& name) {
  if (name.string() == nullptr) return SchemaTypes::kAny;
  const std::string_view text = *name.string();
  if (text == "string") return SchemaTypes::kString;
  if (text == "number") return SchemaTypes::kNumber | SchemaTypes::kInteger;
  if (text == "integer") return SchemaTypes::kInteger;
  if (text == "boolean") return SchemaTypes::kBoolean;
  if (text == "null") return SchemaTypes::kNull;
  if (text == "array") return SchemaTypes::kArray;
  if (text == "object") return SchemaTypes::kObject;
  return SchemaTypes::kAny;
}

}  // namespace

unsigned type_of_value(const Json& value) noexcept {
  switch (value.type()) {
    case Json::Type::null: return SchemaTypes::kNull;
    case Json::Type::boolean: return SchemaTypes::kBoolean;
    case Json::Type::number: {
      const auto* written = value.written_number();
      return value.integer() != nullptr || (written != nullptr && written->is_integer()) ? SchemaTypes::kInteger : SchemaTypes::kNumber;
    }
    case Json::Type::string: return SchemaTypes::kString;
    case Json::Type::array: return SchemaTypes::kArray;
    case Json::Type::object: return SchemaTypes::kObject;
  }
  return SchemaTypes::kAny;
}

const Json* schema_at(const Json& root, const Json& reference) {
  std::string_view rest = reference.string() != nullptr ? std::string_view(*reference.string()) : std::string_view();
  if (!rest.starts_with("#/")) return nullptr;
  rest.remove_prefix(2);
  const Json* at = &root;
  while (at != nullptr) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    at = at->find(rest.substr(0, end));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return at;
}

namespace {

unsigned types_of(const Json& schema, const Json& root, int depth, int& left) {
  if (schema.members() == nullptr || depth > kDeepestSchema || --left < 0) return SchemaTypes::kAny;
  unsigned types = SchemaTypes::kAny;
  for (const auto& [key, value] : *schema.members()) {
    const Json::Array* list = value.elements();
    if (key == "$ref") {
      const Json* other = schema_at(root, value);
      if (other != nullptr) types &= types_of(*other, root, depth + 1, left);
    } else if (key == "const") {
      types &= type_of_value(value);
    } else if (key == "type" && list == nullptr) {
      types &= type_called(value);
    } else if (list != nullptr && (key == "type" || key == "enum" || key == "anyOf" || key == "oneOf")) {
      unsigned any = 0;
      for (const Json& one : *list) any |= key == "type" ? type_called(one) : key == "enum" ? type_of_value(one) : types_of(one, root, depth + 1, left);
      types &= any;
    } else if (list != nullptr && key == "allOf") {
      for (const Json& one : *list) types &= types_of(one, root, depth + 1, left);
    }
  }
  // OpenAPI's schemas say `nullable: true` if null is allowed too.
  const Json* nullable = schema.find("nullable");
  if (nullable != nullptr && *nullable == Json(true)) types |= SchemaTypes::kNull;
  return types;
}

}  // namespace

unsigned types_of(const Json& schema, const Json& root) {
  int left = kMostSchemas;
  return types_of(schema, root, 0, left);
}

}  // namespace tessera
