#include "system/end_signals.hpp"

#include <csignal>

#include <pthread.h>

namespace server {
namespace {

sigset_t end_signals() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

EndSignals::EndSignals() {
  const sigset_t signals = end_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void EndSignals::wait() const noexcept {
  const sigset_t signals = end_signals();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
}

}  // namespace server
