// A spec as text: what it says of the model's results, and nothing else.
#pragma once

#include <string>

#include <tessera/extend/model/model_spec.hpp>

namespace tessera::detail {

// Models whose texts are equal compute the same with the same weights. A line a field: its name and its value; of ropes
// and layers their values in order, "V*N" for N times V. Enumerations are their numbers.
[[nodiscard]] std::string spec_text(const ModelSpec& spec);

}  // namespace tessera::detail
