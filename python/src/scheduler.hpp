// A scheduler and its requests, in the boxes that Python's classes hold.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "types/boxes.hpp"

namespace tessera::python {

struct SchedulerBox {
  std::shared_ptr<EngineBox> engine;
  Scheduler scheduler;
  Driver driver;
  bool driven = false;
  std::shared_mutex mutex;  // calls of the scheduler lock it shared; destroying the scheduler locks it exclusively
  std::atomic<bool> closed = false;

  // Ends the driver's thread and all requests. Called without the GIL. Ends the thread first, without the lock, because
  // the thread's callbacks may ask for figures.
  void close() {
    if (closed.exchange(true)) return;
    driver = Driver();
    const std::scoped_lock lock(mutex);
    scheduler = Scheduler();
  }
  ~SchedulerBox() { close(); }
};
using SchedulerHandle = Handle<SchedulerBox>;

struct RequestBox {
  std::shared_ptr<SchedulerBox> scheduler;
  FailurePtr failure;
  std::mutex mutex;  // guards `handle`, except for cancel()
  RequestHandle handle;
  std::uint32_t samples = 1;
};
using RequestPtr = Handle<RequestBox>;

// Calls a function of the scheduler without the GIL. After close() the scheduler is an empty object, whose functions
// are safe to call.
template <class Call>
auto called(const SchedulerHandle& self, Call&& call) {
  return unlocked([&] {
    const std::shared_lock lock(self->mutex);
    return call(self->scheduler);
  });
}

void bind_request(nb::module_& m);  // Request and Sample

}  // namespace tessera::python
