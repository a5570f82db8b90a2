// Closes JSON Schemas: an object may then have no properties but those that the schema lists. A client that lists an object's properties
// wants a model to write these and no others, but by JSON Schema other properties are allowed.
#pragma once

#include <tessera/json/json.hpp>

namespace server {

// Returns the schema with `"additionalProperties": false` added to each object schema that has `properties` and does not state
// `additionalProperties` itself. Without this a model may go on inventing properties until its answer is cut. The result accepts a
// subset of the values that the schema accepts. Exception: if the schema contains a keyword with which the subset could be empty (allOf,
// not, if, ..., or properties beside anyOf, oneOf or $ref), the whole schema is returned unchanged.
[[nodiscard]] tessera::Json closed_schema(const tessera::Json& schema);

}  // namespace server
