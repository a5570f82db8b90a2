// --trace and --rate: serves the requests of a trace, once with each policy and kind of batching that the command line names.
#pragma once

#include "options.hpp"

namespace tessera::bench {

// Serves the trace, prints the figures, and draws them for --plot. After Ctrl-C it shows the figures so far and throws Interrupted.
void serve_trace(const Options& options);

}  // namespace tessera::bench
