// Threads of the library that leave the host's signals to the host's threads.
#pragma once

#include <cstdint>

namespace tessera::os {

using ThreadBody = void* (*)(void* context);
using ThreadHandle = std::uintptr_t;

// Starts body(context) on a new thread, which join_thread() must wait for. Returns 0, or the system's number of an error (os/error.hpp).
// Signals are blocked in the thread, except those that it raises by its own fault, and the profiler's.
[[nodiscard]] int start_thread(ThreadBody body, void* context, ThreadHandle& thread) noexcept;
void join_thread(ThreadHandle thread) noexcept;

}  // namespace tessera::os
