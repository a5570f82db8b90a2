#include "callbacks.hpp"

namespace tessera::python {

PyRef::PyRef(const nb::object& object)
    : object_(nb::object(object).release().ptr(), [](PyObject* last) {
        if (nb::detail::cleanup_guard guard{}) Py_DECREF(last);
      }) {}

void Failure::keep() noexcept {
  const std::scoped_lock lock(mutex_);
  if (exception_ == nullptr) exception_ = std::current_exception();
}

void Failure::rethrow() {
  std::exception_ptr exception;
  {
    const std::scoped_lock lock(mutex_);
    exception = std::exchange(exception_, nullptr);
  }
  if (exception != nullptr) std::rethrow_exception(exception);
}

bool Failure::kept() noexcept {
  const std::scoped_lock lock(mutex_);
  return exception_ != nullptr;
}

std::function<bool(std::uint64_t, std::uint64_t)> progress_callback(const nb::object& fn, FailurePtr failure) {
  if (fn.is_none()) return {};
  return [call = PyRef(fn), failure = std::move(failure)](std::uint64_t done, std::uint64_t total) {
    const Entered entered;
    if (!entered) return false;
    try {
      const nb::object answer = call.get()(done, total);
      return !answer.is(nb::handle(Py_False));
    } catch (...) {
      failure->keep();
      return false;
    }
  };
}

}  // namespace tessera::python
