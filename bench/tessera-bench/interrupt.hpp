// Handles Ctrl-C: drops the present run. The results of all earlier runs are shown, also the earlier runs of the same test.
#pragma once

#include <csignal>

#include "failure.hpp"

namespace tessera::bench {

inline volatile std::sig_atomic_t stop_requested = 0;

// The signal handler: asks the program to stop. A second signal has its usual effect and ends the program.
inline void request_stop(int signal) {
  stop_requested = 1;
  std::signal(signal, SIG_DFL);
}

inline void throw_if_interrupted() {
  if (stop_requested != 0) throw Interrupted();
}

}  // namespace tessera::bench
