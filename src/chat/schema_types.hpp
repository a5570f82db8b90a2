// Finds out which JSON types a schema allows.
#pragma once

#include <tessera/json/json.hpp>

namespace tessera {

struct SchemaTypes {
  enum : unsigned { kString = 1, kNumber = 2, kInteger = 4, kBoolean = 8, kNull = 16, kArray = 32, kObject = 64, kAny = 127 };
};

// Returns the types that a schema allows, as a sum of SchemaTypes. Reads the keywords type, enum, const, anyOf, oneOf and allOf, and
// follows references into the document `root`. If a schema has none of these keywords, is too large or contains itself, it counts as
// allowing all types.
[[nodiscard]] unsigned types_of(const Json& schema, const Json& root);
// Returns the JSON type of a value, as one of SchemaTypes.
[[nodiscard]] unsigned type_of_value(const Json& value) noexcept;

// Returns the schema in the document `root` to which a reference such as "#/$defs/a" points; nullptr if there is none.
[[nodiscard]] const Json* schema_at(const Json& root, const Json& reference);

}  // namespace tessera
