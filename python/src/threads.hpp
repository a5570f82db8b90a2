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

// Releases the GIL, and takes it again at the end of the block. If the interpreter has begun to end by then, a thread
// other than the main one waits there until the process ends: Python would end the thread in the middle of C++ code.
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

// Notes that the interpreter begins to end.
void begin_ending() noexcept;

// Marks this thread, while the object lives, as running Python code for the library (a stage, on_ready) inside a call
// of the library.
class InCallback {
 public:
  InCallback() noexcept;
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  [[nodiscard]] static bool here() noexcept;
};

// Throws InvalidState within a callback, because the function `what` would wait for the call that runs the callback.
void refuse_in_callback(const char* what);

// Returns whether this thread is the interpreter's main thread, the one that runs signal handlers.
[[nodiscard]] bool on_main_thread() noexcept;
void remember_main_thread();

// Runs `work(stop)` without the GIL and returns its Result. `work` must not throw. On the main thread, Ctrl-C and every
// other signal handler that raises stop the work; interruptible() then throws the exception. For this the work runs on
// another thread, while this thread looks for signals.
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
    } catch (const std::system_error&) {  // no thread is available: the work runs here, and signals cannot interrupt it
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

// Throws the exception of a signal handler. Loops on the main thread that wait in slices call it.
void check_signals();

// Counts the callers that use an object: one caller that changes it, or any number of callers that read it. A caller
// beyond these gets InvalidState instead of a data race.
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

// Releases the library's objects behind a handle: without the GIL, and on another thread if this thread runs a callback
// of the library. The caller holds the GIL.
void let_go(std::shared_ptr<void> object) noexcept;

// A shared handle to a box of the library's objects. It is the only member of every class that Python sees.
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
