#include "interrupts.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr int kProgramDone = SIGUSR1;  // tells the waiting thread that the program is done

sigset_t waited_for() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, kProgramDone);
  return set;
}

}  // namespace

Interrupts::Interrupts(IdleInterrupt idle, void (*before_end)() noexcept) : idle_(idle), before_end_(before_end) {
  struct sigaction present = {};
  sigaction(SIGINT, nullptr, &present);
  if (present.sa_handler == SIG_IGN) return;
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  for (std::size_t i = 0; i < 2; ++i) {
    ends_[i] = ends[i];
    (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
  }
  const sigset_t set = waited_for();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { wait(); });
}

Interrupts::~Interrupts() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), kProgramDone);
  thread_.join();
  const sigset_t set = waited_for();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  for (const std::intptr_t end : ends_) close(static_cast<int>(end));
}

void Interrupts::wait() {
  const sigset_t set = waited_for();
  for (int signal = 0;;) {
    if (sigwait(&set, &signal) != 0) continue;
    if (signal == kProgramDone) return;
    arrived();
  }
}

void Interrupts::arrived() {
  const std::lock_guard lock(mutex_);
  if (!work_ && idle_ == IdleInterrupt::wakes) {
    (void)!write(static_cast<int>(ends_[1]), "", 1);
  } else if (!work_ || !work_->request_stop()) {
    if (before_end_ != nullptr) before_end_();
    _exit(130);
  }
}

bool Interrupts::clear() noexcept {
  char bytes[64];
  bool had = false;
  while (read(static_cast<int>(ends_[0]), bytes, sizeof(bytes)) > 0) had = true;
  return had;
}
