#include "os/thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <initializer_list>

namespace tessera::os {

int start_thread(ThreadBody body, void* context, ThreadHandle& thread) noexcept {
  // A new thread inherits the signal mask of its maker, so the mask of this thread is changed while the new thread is made.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) sigdelset(&blocked, signal);
  const bool masked = ::pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0;
  pthread_t started{};
  const int error = ::pthread_create(&started, nullptr, body, context);
  if (masked) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) std::memcpy(&thread, &started, sizeof started);
  return error;
}

void join_thread(ThreadHandle thread) noexcept {
  pthread_t started{};
  std::memcpy(&started, &thread, sizeof started);
  ::pthread_join(started, nullptr);
}

}  // namespace tessera::os
