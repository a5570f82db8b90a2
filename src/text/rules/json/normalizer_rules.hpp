// The normalizer of a tokenizer.json.
#pragma once

#include "text/pipeline/normalizer.hpp"
#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

// Returns the steps that the value of "normalizer" states; none if the value is null. Errors: unsupported, a rule that tessera does not
// have; corrupt_file. Both errors name the place.
[[nodiscard]] Result<Normalizer> read_normalizer(const Json& json);

}  // namespace tessera::detail
