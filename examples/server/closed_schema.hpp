// JSON Schemas as those who write them for models mean them.
#pragma once

#include <tessera/json/json.hpp>

namespace server {

// Objects that state their properties have these alone, unless the schema says otherwise: by JSON Schema any others are allowed,
// and a model that likes inventing them never ends. What is accepted is a part of what the schema accepts. Schemas in which that
// could leave nothing (allOf, not, if, ...) stay as they are.
[[nodiscard]] tessera::Json closed_schema(const tessera::Json& schema);

}  // namespace server
