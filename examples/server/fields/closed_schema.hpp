// Closes JSON Schemas, which means: forbids properties that a schema does not list. JSON Schema allows such properties by default, but a
// client that lists an object's properties wants the model to write only these.
#pragma once

#include <tessera/json/json.hpp>

namespace server {

// Returns the schema with `"additionalProperties": false` added to each object schema that has `properties`, but no `additionalProperties`.
// A model could otherwise go on inventing properties until its answer is cut. The result accepts a subset of the values that the schema
// accepts. Exception: returns the schema unchanged if it contains a keyword with which the subset could be empty (allOf, not, if, ..., or
// properties beside anyOf, oneOf or $ref).
[[nodiscard]] tessera::Json closed_schema(const tessera::Json& schema);

}  // namespace server
