#include "callbacks.hpp"

#include <vector>

namespace tessera::python {

namespace {

std::mutex& cells_mutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

}  // namespace

struct PyRef::Cell {
  PyObject* object;                          // guarded by the GIL
  Cell *before = nullptr, *after = nullptr;  // all cells, guarded by cells_mutex()
  static inline Cell* first = nullptr;

  explicit Cell(PyObject* of) : object(of) {
    const std::scoped_lock lock(cells_mutex());
    after = first;
    if (after != nullptr) after->before = this;
    first = this;
  }
  ~Cell() {
    {
      const std::scoped_lock lock(cells_mutex());
      (before != nullptr ? before->after : first) = after;
      if (after != nullptr) after->before = before;
    }
    if (nb::detail::cleanup_guard guard{}) Py_XDECREF(object);
  }
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  static void drop_all() {
    std::vector<PyObject*> objects;
    {
      const std::scoped_lock lock(cells_mutex());
      for (Cell* cell = first; cell != nullptr; cell = cell->after)
        objects.push_back(std::exchange(cell->object, nullptr));
    }
    for (PyObject* object : objects) Py_XDECREF(object);
  }
};

PyRef::PyRef(const nb::object& object) : cell_(std::make_shared<Cell>(nb::object(object).release().ptr())) {}

nb::object PyRef::get() const {
  if (cell_ == nullptr || cell_->object == nullptr) return nb::none();
  return nb::borrow(cell_->object);
}

void drop_references() { PyRef::Cell::drop_all(); }

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
