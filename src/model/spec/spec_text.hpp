// Writes a spec as text, to compare specs: models of equal texts compute keys, values, states and logits in the same way (Identity).
#pragma once

#include <string>

#include <tessera/extend/model/model_spec.hpp>

namespace tessera::detail {

// Returns a text with the fields of the spec that change what is computed for a sequence (Counts). Each field is a line with the field's
// name and value. A field of ropes or layers is one line with the values of all ropes or layers, in order; "V*N" means that N consecutive
// ropes or layers have the value V. Enumerations are written as numbers.
[[nodiscard]] std::string spec_text(const ModelSpec& spec);

}  // namespace tessera::detail
