// Signals that end a program's work.
#pragma once

#include <csignal>

namespace tessera::tool {

// Sets a handler for a signal. Exception: if the signal is ignored, as a shell ignores it for background jobs, it stays ignored. To be
// ignored at every moment, the signal is checked before a handler is set.
inline void on_signal(int signal, void (*handler)(int)) {
  struct sigaction now = {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;
  std::signal(signal, handler);
}

}  // namespace tessera::tool
