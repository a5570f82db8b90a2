// How calls of the library and the interpreter share threads.
//
// Rules: the library is never called with the GIL held. A callback of the library takes the GIL. Destructors of the
// library's objects run without the GIL, and never within a callback of the library. After interpreter shutdown has
// begun, callbacks do nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "types/errors.hpp"

namespace tessera::python {

// Gives the GIL up, and takes it back at the end of the block. A thread other than the main one that comes back when
// the interpreter has begun to end waits for the end of the process: Python would end the thread within C++.
class Unlocked {
 public:
  Unlocked() noexcept : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Runs `work` without the GIL and returns its result.
template <class Work>
auto unlocked(Work&& work) {
  const Unlocked released;
  return work();
}

// Says that the interpreter begins to end.
void begin_ending() noexcept;

// Says that this thread runs Python code on behalf of the library (a stage, on_ready), inside of a call of the library.
class InCallback {
 public:
  InCallback() noexcept;
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  [[nodiscard]] static bool here() noexcept;
};

// Throws InvalidState within a callback: the call `what` would wait for the call that the callback belongs to.
void refuse_in_callback(const char* what);

// Returns whether this thread is the interpreter's main thread, the one that runs signal handlers.
[[nodiscard]] bool on_main_thread() noexcept;
void remember_main_thread();

// Runs `work(stop)` without the GIL. On the main thread Ctrl-C, and any other signal handler that raises, stops the
// work and comes through: the work runs on a thread of its own, and this thread looks for signals. `work` returns a
// Result and must not throw.
template <class Work>
auto interruptible(Work&& work) -> std::invoke_result_t<Work&, std::stop_token> {
  using Value = std::invoke_result_t<Work&, std::stop_token>;
  if (!on_main_thread()) return unlocked([&] { return work(std::stop_token{}); });
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Value> result;
  std::stop_source source;
  std::optional<nb::python_error> raised;
  {
    const Unlocked released;
    std::thread thread;
    try {
      thread = std::thread([&] {
        auto value = work(source.get_token());
        const std::scoped_lock lock(mutex);
        result.emplace(std::move(value));
        ended.notify_one();
      });
    } catch (const std::system_error&) {  // no thread can be had: nothing can be interrupted, but everything works
      result.emplace(work(std::stop_token{}));
    }
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return result.has_value(); })) {
      lock.unlock();
      {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) {
          nb::python_error error;
          if (!raised) raised.emplace(std::move(error));
          source.request_stop();
        }
      }
      lock.lock();
    }
    lock.unlock();
    if (thread.joinable()) thread.join();
  }
  if (raised) throw nb::python_error(std::move(*raised));
  return *std::move(result);
}

// Throws what a signal handler raises. For loops on the main thread that wait in slices.
void check_signals();

// Counts the callers that use an object: one caller that changes it, or any number of callers that read. A second caller gets InvalidState
// instead of a race.
class Use {
 public:
  class Claim {
   public:
    Claim(Use& use, int by) noexcept : use_(&use), by_(by) {}
    Claim(Claim&& other) noexcept : use_(std::exchange(other.use_, nullptr)), by_(other.by_) {}
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      if (use_ != nullptr) use_->users_.fetch_sub(by_, std::memory_order_release);
    }

   private:
    Use* use_;
    int by_;
  };
  [[nodiscard]] Claim change(const char* what);
  [[nodiscard]] Claim read(const char* what);

 private:
  static constexpr int kChanges = 1 << 20;
  std::atomic<int> users_{0};
};

// Lets go of the library's objects behind a handle: without the GIL, and on another thread if this one runs a callback
// of the library. The caller holds the GIL.
void let_go(std::shared_ptr<void> object) noexcept;

// A shared handle to a box of the library's objects: the only member of every class that Python sees.
template <class Box>
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::shared_ptr<Box> box) noexcept : box_(std::move(box)) {}
  Handle(const Handle&) = default;
  Handle(Handle&&) noexcept = default;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (box_ != nullptr) let_go(std::move(box_));
  }
  [[nodiscard]] Box* operator->() const noexcept { return box_.get(); }
  [[nodiscard]] Box& operator*() const noexcept { return *box_; }
  [[nodiscard]] const std::shared_ptr<Box>& box() const noexcept { return box_; }

 private:
  std::shared_ptr<Box> box_;
};

}  // namespace tessera::python
