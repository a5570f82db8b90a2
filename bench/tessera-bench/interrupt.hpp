// Ctrl-C: the run under way is dropped, and what was measured before it is shown, runs of the same test included.
#pragma once

#include <csignal>

#include "failure.hpp"

namespace tessera::bench {

inline volatile std::sig_atomic_t stop_requested = 0;

// A second signal ends the program as usual.
inline void request_stop(int signal) {
  stop_requested = 1;
  std::signal(signal, SIG_DFL);
}

inline void throw_if_interrupted() {
  if (stop_requested != 0) throw Interrupted();
}

}  // namespace tessera::bench
