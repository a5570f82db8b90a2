#include "os/thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <initializer_list>

namespace tessera::os {
namespace {

// Attributes of the library's threads: the host's signals are blocked in them. Only glibc from 2.32 on has an attribute for this; with
// other C libraries the threads have the signal mask of their maker.
class WorkerAttributes {
 public:
  WorkerAttributes() noexcept : made_(pthread_attr_init(&attributes_) == 0) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    if (!made_) return;
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&blocked, signal);
    }
    pthread_attr_setsigmask_np(&attributes_, &blocked);
#endif
  }
  WorkerAttributes(const WorkerAttributes&) = delete;
  WorkerAttributes& operator=(const WorkerAttributes&) = delete;
  ~WorkerAttributes() {
    if (made_) pthread_attr_destroy(&attributes_);
  }
  [[nodiscard]] const pthread_attr_t* get() const noexcept { return made_ ? &attributes_ : nullptr; }

 private:
  pthread_attr_t attributes_;
  bool made_;
};

static_assert(sizeof(pthread_t) <= sizeof(ThreadHandle));

}  // namespace

int start_thread(ThreadBody body, void* context, ThreadHandle& thread) noexcept {
  const WorkerAttributes attributes;
  pthread_t started{};
  const int error = ::pthread_create(&started, attributes.get(), body, context);
  if (error == 0) std::memcpy(&thread, &started, sizeof started);
  return error;
}

void join_thread(ThreadHandle thread) noexcept {
  pthread_t started{};
  std::memcpy(&started, &thread, sizeof started);
  ::pthread_join(started, nullptr);
}

}  // namespace tessera::os
