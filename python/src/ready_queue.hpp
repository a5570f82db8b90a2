// Tells an event loop which requests have something to read. The scheduler's thread only notes a number. The queue's
// own thread takes the GIL and calls `wake`, once for any number of requests. So a step never waits for Python.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "callbacks.hpp"

namespace tessera::python {

class ReadyQueue : public std::enable_shared_from_this<ReadyQueue> {
 public:
  // Makes a queue and begins its thread, which holds the queue until close().
  static std::shared_ptr<ReadyQueue> start(PyRef wake);
  explicit ReadyQueue(PyRef wake) : wake_(std::move(wake)) {}
  ReadyQueue(const ReadyQueue&) = delete;
  ReadyQueue& operator=(const ReadyQueue&) = delete;

  // Notes that a request has something to read. Any thread.
  void push(std::uint64_t key) noexcept;
  // Returns the numbers noted since the last call. After take(), `wake` may be called again.
  [[nodiscard]] std::vector<std::uint64_t> take();
  // Ends the thread. `wake` is not called after close(). Called without the GIL.
  void close() noexcept;

 private:
  void run();

  PyRef wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> keys_;
  bool told_ = false, closed_ = false;
  std::thread thread_;
};

struct ReadyBox {
  std::shared_ptr<ReadyQueue> state;
  ~ReadyBox() { state->close(); }
};
using ReadyHandle = Handle<ReadyBox>;

void close_ready_queues();
void bind_ready_queue(nb::module_& m);

}  // namespace tessera::python
