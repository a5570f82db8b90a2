// Starts the library's threads. In these threads the host's signals are blocked, so that only threads of the host itself receive them.
#pragma once

#include <cstdint>

namespace tessera::os {

using ThreadBody = void* (*)(void* context);
using ThreadHandle = std::uintptr_t;

// Starts a thread that runs body(context). Call join_thread() for each thread. Returns 0, or the system's number of an error
// (os/error.hpp). All signals are blocked in the thread, except those that its own faults cause (such as SIGSEGV), and SIGPROF, which
// profilers use. Exception: on Linux without glibc 2.32 or newer no signals are blocked by this function.
[[nodiscard]] int start_thread(ThreadBody body, void* context, ThreadHandle& thread) noexcept;
void join_thread(ThreadHandle thread) noexcept;

}  // namespace tessera::os
