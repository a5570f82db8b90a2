// Threads of the library. In these threads the host's signals are blocked, so that only the host's own threads get the signals.
#pragma once

#include <cstdint>

namespace tessera::os {

using ThreadBody = void* (*)(void* context);
using ThreadHandle = std::uintptr_t;

// Starts body(context) on a new thread. Call join_thread() for each thread. Returns 0, or the system's number of an error (os/error.hpp).
// All signals are blocked in the thread, except signals of its own faults (such as SIGSEGV) and SIGPROF, which profilers use.
[[nodiscard]] int start_thread(ThreadBody body, void* context, ThreadHandle& thread) noexcept;
void join_thread(ThreadHandle thread) noexcept;

}  // namespace tessera::os
