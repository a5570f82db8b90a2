// Which types of JSON a schema lets a value have.
#pragma once

#include <tessera/json/json.hpp>

namespace tessera {

struct SchemaTypes {
  enum : unsigned { kString = 1, kNumber = 2, kInteger = 4, kBoolean = 8, kNull = 16, kArray = 32, kObject = 64, kAny = 127 };
};

// By type, enum, const, anyOf, oneOf, allOf and references into `root`; a keyword that is not among these allows all.
// One that is too large or holds itself allows all.
[[nodiscard]] unsigned types_of(const Json& schema, const Json& root);
[[nodiscard]] unsigned type_of_value(const Json& value) noexcept;

// Finds the schema that a reference ("#/$defs/a") points at; nullptr if there is none.
[[nodiscard]] const Json* schema_at(const Json& root, const Json& reference);

}  // namespace tessera
