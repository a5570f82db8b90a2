// Signals that end a program's work.
#pragma once

#include <csignal>

namespace tessera::tool {

// Sets a handler, unless the signal is ignored, as a shell does for background jobs. Asks first, so that there is no moment in which
// an ignored signal has an effect.
inline void on_signal(int signal, void (*handler)(int)) {
  struct sigaction now = {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;
  std::signal(signal, handler);
}

}  // namespace tessera::tool
