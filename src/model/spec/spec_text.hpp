// Writes a spec as text: all fields that change the model's results, and no others. Equal texts mean equal computations (Identity).
#pragma once

#include <string>

#include <tessera/extend/model/model_spec.hpp>

namespace tessera::detail {

// Returns the fields of the spec on which keys and values depend (Counts) as a text, so that two specs can be compared. Each field is a
// line with its name and value. A field of ropes or layers is one line with the values of all of them, in order; "V*N" stands for N times
// the value V. Enumerations are written as numbers.
[[nodiscard]] std::string spec_text(const ModelSpec& spec);

}  // namespace tessera::detail
