// Python callables that the library calls.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "threads.hpp"

namespace tessera::python {

// A reference to a Python object that may be copied and destroyed on any thread, with or without the GIL. After the interpreter's end the
// object is left alone.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(const nb::object& object);
  [[nodiscard]] nb::handle get() const noexcept { return object_.get(); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  std::shared_ptr<PyObject> object_;
};

// The exception of a callback, on its way to the caller of the function that led to the callback.
class Failure {
 public:
  // Keeps the exception that is being handled, if none is kept. Call it in a catch block.
  void keep() noexcept;
  // Throws the kept exception, once. The caller holds the GIL.
  void rethrow();
  [[nodiscard]] bool kept() noexcept;

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
};
using FailurePtr = std::shared_ptr<Failure>;

// Takes the GIL for a callback. False: the interpreter is ending, and Python must not be entered.
class Entered {
 public:
  Entered() = default;
  explicit operator bool() const noexcept { return static_cast<bool>(guard_); }

 private:
  InCallback here_;
  nb::detail::cleanup_guard guard_;
};

// Returns a progress callback for the library: fn(done, total). It cancels if `fn` returns False or raises; `failure` then has the exception.
// None: no callback.
std::function<bool(std::uint64_t, std::uint64_t)> progress_callback(const nb::object& fn, FailurePtr failure);

// Throws the exception of a callback if there is one; else returns the result's value or throws its error.
template <class T>
T take(Result<T> result, Failure& failure) {
  if (!result) failure.rethrow();
  return take(std::move(result));
}

}  // namespace tessera::python
