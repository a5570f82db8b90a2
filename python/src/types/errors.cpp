#include "types/errors.hpp"

#include <nanobind/stl/string.h>

namespace tessera::python {

namespace {

[[noreturn]] void raise_parts(ErrorCode code, std::string_view message, std::string_view place) {
  const nb::object make = nb::module_::import_("tessera._errors").attr("make");
  const nb::object error =
      make(static_cast<int>(code), nb::str(message.data(), message.size()), nb::str(place.data(), place.size()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace

void raise(const Error& error) { raise_parts(error.code(), error.message(), error.place()); }
void raise(ErrorCode code, std::string_view message) { raise_parts(code, message, {}); }

}  // namespace tessera::python
