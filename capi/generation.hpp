// The JSON keys of a generation's options, which generations and requests share.
#pragma once

#include <tessera/generation.hpp>

#include "options/json_options.hpp"

namespace tessera::c {

// Returns the keys of GenerateOptions.
[[nodiscard]] std::span<const Key<GenerateOptions>> generate_keys();
void read_speculate(const Value& value, SpeculateOptions& to);
void read_early_exit(const Value& value, EarlyExitOptions& to);

}  // namespace tessera::c
