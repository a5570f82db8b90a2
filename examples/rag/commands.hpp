// The commands of the command line.
#pragma once

#include "options.hpp"

namespace rag {

// Runs the command, and returns the exit status. Throws Failure or UsageError.
[[nodiscard]] int run(const Options& options);

}  // namespace rag
