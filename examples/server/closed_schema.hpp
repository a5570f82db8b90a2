// Makes JSON Schemas stricter than they are written, as their authors mean them for models.
#pragma once

#include <tessera/json/json.hpp>

namespace server {

// Returns a schema in which objects that state their properties allow no others, unless the schema says otherwise. By JSON Schema
// any others are allowed, and a model that likes inventing properties never ends. The result accepts a subset of what the schema
// accepts. Schemas for which the subset could be empty (allOf, not, if, ...) stay as they are.
[[nodiscard]] tessera::Json closed_schema(const tessera::Json& schema);

}  // namespace server
