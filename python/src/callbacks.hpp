// Python callables that the library calls.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "threads.hpp"

namespace tessera::python {

// A reference to a Python object. It may be copied and destroyed on any thread, with or without the GIL. At the
// interpreter's end drop_references() releases the objects, because they can form cycles: a callable may refer to the
// library's object that holds the callable. Python's collector cannot see such a cycle.
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

// Releases all objects to which PyRefs refer. The caller holds the GIL.
void drop_references();

// Carries the exception of a callback to the caller of the function that led to the callback.
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

// Takes the GIL for a callback. Converts to false if the interpreter is ending; then the callback must not enter
// Python.
class Entered {
 public:
  Entered() = default;
  explicit operator bool() const noexcept { return static_cast<bool>(guard_); }

 private:
  InCallback here_;
  nb::detail::cleanup_guard guard_;
};

// Returns a progress callback for the library, which calls fn(done, total). The work is cancelled if `fn` returns False
// or raises; `failure` then keeps the exception. Returns an empty function if `fn` is None.
std::function<bool(std::uint64_t, std::uint64_t)> progress_callback(const nb::object& fn, FailurePtr failure);

// Returns the result's value. If the result failed, throws the exception of the callback, or else the result's error.
template <class T>
T take(Result<T> result, Failure& failure) {
  if (!result) failure.rethrow();
  return take(std::move(result));
}

}  // namespace tessera::python
