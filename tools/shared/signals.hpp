// Signals that end a program's work.
#pragma once

#include <csignal>

namespace tessera::tool {

// Not those that the shell has background jobs ignore: asked first, so that there is no moment in which they count.
inline void on_signal(int signal, void (*handler)(int)) {
  struct sigaction now = {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) return;
  std::signal(signal, handler);
}

}  // namespace tessera::tool
