// The requests of a trace, served in each of the ways that the command line names.
#pragma once

#include "options.hpp"

namespace tessera::bench {

// Prints what came of it, and draws it. Throws Interrupted after Ctrl-C, when what has been measured has been shown.
void serve_trace(const Options& options);

}  // namespace tessera::bench
