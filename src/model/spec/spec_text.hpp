// A spec as text: the fields that change the model's results, and nothing else.
#pragma once

#include <string>

#include <tessera/extend/model/model_spec.hpp>

namespace tessera::detail {

// Returns the text. Models with equal texts and equal weights compute the same. Each field has a line with its name and its value; a field
// of ropes or layers has all their values in order, "V*N" for N times V. Enumerations are numbers.
[[nodiscard]] std::string spec_text(const ModelSpec& spec);

}  // namespace tessera::detail
