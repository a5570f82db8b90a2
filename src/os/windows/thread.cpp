#include "os/thread.hpp"

#include <process.h>

#include <cerrno>
#include <memory>
#include <new>

#include "os/windows/windows.hpp"

namespace tessera::os {
namespace {

struct Start {
  ThreadBody body;
  void* context;
};

unsigned __stdcall run(void* start) {
  const std::unique_ptr<Start> held(static_cast<Start*>(start));
  held->body(held->context);
  return 0;
}

}  // namespace

int start_thread(ThreadBody body, void* context, ThreadHandle& thread) noexcept {
  std::unique_ptr<Start> start(new (std::nothrow) Start{body, context});
  if (start == nullptr) return ERROR_NOT_ENOUGH_MEMORY;
  // Starts the thread by _beginthreadex(), because the C runtime must set up its data for the thread. Its errors are in errno: too many
  // threads, or no memory.
  const std::uintptr_t handle = ::_beginthreadex(nullptr, 0, &run, start.get(), 0, nullptr);
  if (handle == 0) return errno == EAGAIN ? ERROR_MAX_THRDS_REACHED : ERROR_NOT_ENOUGH_MEMORY;
  (void)start.release();
  thread = handle;
  return 0;
}

void join_thread(ThreadHandle thread) noexcept {
  const HANDLE handle = reinterpret_cast<HANDLE>(thread);
  ::WaitForSingleObject(handle, INFINITE);
  ::CloseHandle(handle);
}

}  // namespace tessera::os
