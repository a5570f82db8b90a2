// Threads of the library. They block the signals of the host, so that only the host's threads get these signals.
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
