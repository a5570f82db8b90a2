// Python callables that the library calls.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "threads.hpp"

namespace tessera::python {

// A reference to a Python object that may be copied and destroyed on any thread, with or without the GIL. At the
// interpreter's end drop_references() lets go of the objects: what a callable refers to may refer to the library's
// object that holds the callable, which Python's collector cannot see.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(const nb::object& object);
  // Returns the object; None after drop_references(). The caller holds the GIL.
  [[nodiscard]] nb::object get() const;

 private:
  friend void drop_references();
  struct Cell;
  std::shared_ptr<Cell> cell_;
};

// Lets go of all objects that PyRefs refer to. The caller holds the GIL.
void drop_references();

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

// Returns a progress callback for the library: fn(done, total). It cancels if `fn` returns False or raises; `failure`
// then has the exception. None: no callback.
std::function<bool(std::uint64_t, std::uint64_t)> progress_callback(const nb::object& fn, FailurePtr failure);

// Throws the exception of a callback if there is one; else returns the result's value or throws its error.
template <class T>
T take(Result<T> result, Failure& failure) {
  if (!result) failure.rethrow();
  return take(std::move(result));
}

}  // namespace tessera::python
