#include "interrupts.hpp"

#include <csignal>

#include <unistd.h>

namespace rag {

namespace {

constexpr int kProgramDone = SIGUSR1;  // tells the waiting thread that the program is done

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, kProgramDone);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  struct sigaction present = {};
  sigaction(SIGINT, nullptr, &present);
  if (present.sa_handler == SIG_IGN) return;
  const sigset_t set = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { wait(); });
}

Interrupts::~Interrupts() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kProgramDone);
  thread_.join();
  const sigset_t set = awaited_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::stop_token Interrupts::begin() {
  const std::lock_guard lock(mutex_);
  work_.emplace();
  return work_->get_token();
}

void Interrupts::end() {
  const std::lock_guard lock(mutex_);
  work_.reset();
}

void Interrupts::wait() {
  const sigset_t set = awaited_signals();
  for (int signal = 0;;) {
    if (sigwait(&set, &signal) != 0) continue;
    if (signal == kProgramDone) return;
    const std::lock_guard lock(mutex_);
    if (work_ && work_->request_stop()) continue;
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(130);
  }
}

}  // namespace rag
