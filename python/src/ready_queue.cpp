#include "ready_queue.hpp"

#include <list>
#include <utility>

#include <nanobind/stl/vector.h>

namespace tessera::python {

namespace {

std::mutex live_mutex;
std::list<std::weak_ptr<ReadyQueue>>& live_queues() {
  static auto* live = new std::list<std::weak_ptr<ReadyQueue>>();
  return *live;
}

}  // namespace

std::shared_ptr<ReadyQueue> ReadyQueue::start(PyRef wake) {
  auto queue = std::make_shared<ReadyQueue>(std::move(wake));
  queue->thread_ = std::thread([queue] { queue->run(); });
  return queue;
}

void ReadyQueue::push(std::uint64_t key) noexcept {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  try {
    keys_.push_back(key);
  } catch (...) {  // no memory: the reader asks again when the next request is ready
  }
  if (!told_) changed_.notify_one();
}

std::vector<std::uint64_t> ReadyQueue::take() {
  const std::scoped_lock lock(mutex_);
  told_ = false;
  return std::exchange(keys_, {});
}

void ReadyQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || (!keys_.empty() && !told_); });
    if (closed_) return;
    told_ = true;
    lock.unlock();
    {
      const Entered entered;
      if (entered) {
        try {
          wake_.get()();
        } catch (nb::python_error& error) {
          error.discard_as_unraisable("tessera: waking an event loop");
        } catch (...) {
        }
      }
    }
    lock.lock();
  }
}

void ReadyQueue::close() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    changed_.notify_one();
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void close_ready_queues() {
  std::list<std::weak_ptr<ReadyQueue>> all;
  {
    const std::scoped_lock lock(live_mutex);
    all.swap(live_queues());
  }
  for (const auto& one : all) {
    if (const auto queue = one.lock()) queue->close();
  }
}

void bind_ready_queue(nb::module_& m) {
  nb::class_<ReadyHandle>(
      m, "ReadyQueue",
      "Tells an event loop which requests have something to read: wake() is called on a thread of the queue's own.")
      .def(
          "__init__",
          [](ReadyHandle* self, const nb::object& wake) {
            auto queue = ReadyQueue::start(PyRef(wake));
            {
              const std::scoped_lock lock(live_mutex);
              live_queues().remove_if([](const std::weak_ptr<ReadyQueue>& one) { return one.expired(); });
              live_queues().push_back(queue);
            }
            new (self) ReadyHandle(std::make_shared<ReadyBox>(std::move(queue)));
          },
          nb::arg("wake"), nb::sig("def __init__(self, wake: collections.abc.Callable[[], object]) -> None"))
      .def(
          "take", [](const ReadyHandle& self) { return self->state->take(); },
          "Returns the keys of the requests that became ready since the last call.")
      .def("close", [](const ReadyHandle& self) { unlocked([&] { self->state->close(); }); });
}

}  // namespace tessera::python
