// Options of a generation as JSON, which generations and requests have.
#pragma once

#include <tessera/generation.hpp>

#include "options/json_options.hpp"

namespace tessera::c {

// Options has a member generate.
[[nodiscard]] std::span<const Key<GenerateOptions>> generate_keys();
void read_speculate(const Value& value, SpeculateOptions& to);

}  // namespace tessera::c
