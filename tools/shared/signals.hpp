// Signals that end a program's work.
#pragma once

#include <csignal>

namespace tessera::tool {

// Sets a handler, unless the signal is ignored, as a shell ignores it for background jobs. Checks before it sets the handler, so that an
// ignored signal has no effect at any moment.
inline void on_signal(int signal, void (*handler)(int)) {
  struct sigaction now = {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;
  std::signal(signal, handler);
}

}  // namespace tessera::tool
