// The JSON types that a schema allows for a value.
#pragma once

#include <tessera/json/json.hpp>

namespace tessera {

struct SchemaTypes {
  enum : unsigned { kString = 1, kNumber = 2, kInteger = 4, kBoolean = 8, kNull = 16, kArray = 32, kObject = 64, kAny = 127 };
};

// Returns the types that type, enum, const, anyOf, oneOf, allOf and references into `root` allow. Other keywords allow all types; so does a
// schema that is too large or contains itself.
[[nodiscard]] unsigned types_of(const Json& schema, const Json& root);
// Returns the type of a value.
[[nodiscard]] unsigned type_of_value(const Json& value) noexcept;

// Finds the schema that a reference ("#/$defs/a") points at; nullptr if there is none.
[[nodiscard]] const Json* schema_at(const Json& root, const Json& reference);

}  // namespace tessera
