#include "interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace {

constexpr int kLeave = SIGUSR1;  // tells the waiting thread that the work is over

sigset_t signals(std::initializer_list<int> list) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : list) sigaddset(&set, signal);
  return set;
}

int wait_for(std::initializer_list<int> list) {
  const sigset_t set = signals(list);
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  return signal;
}

}  // namespace

Interrupt::Interrupt() {
  // A shell makes background jobs ignore SIGINT. For such a job the object does nothing: if it waited for the signal, the job would react
  // to a Ctrl-C that is meant for another program.
  struct sigaction present = {};
  sigaction(SIGINT, nullptr, &present);
  if (present.sa_handler == SIG_IGN) return;
  const sigset_t set = signals({SIGINT, kLeave});
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] {
    if (wait_for({SIGINT, kLeave}) == kLeave) return;
    // From here on SIGINT has its default effect.
    const sigset_t again = signals({SIGINT});
    pthread_sigmask(SIG_UNBLOCK, &again, nullptr);
    source_.request_stop();
    wait_for({kLeave});
  });
}

Interrupt::~Interrupt() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kLeave);
  thread_.join();
  const sigset_t set = signals({SIGINT, kLeave});
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}
