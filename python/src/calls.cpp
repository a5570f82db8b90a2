#include "calls.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include <nanobind/stl/string.h>

namespace tessera::python {

namespace {

using Entry = PyObject* (*)(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names);

// nanobind's functions have a few entries, by the kind of their parameters. Each entry gets a checked entry, which calls
// it and does nothing else if the call succeeds.
constexpr std::size_t kMostEntries = 16;
std::array<Entry, kMostEntries> entries{};

// Replaces the error of a call whose arguments do not fit. Keeps all other errors.
void explain(PyObject* function, PyObject* const* arguments, std::size_t count_and_flags, PyObject* names) noexcept {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
  nb::python_error raised;  // takes the error
  try {
    const std::size_t count = count_and_flags << 2 >> 2;  // nanobind keeps flags in the two highest bits
    const nb::handle of(function);
    nb::list positional;
    for (std::size_t i = 0; i < count; ++i) positional.append(nb::handle(arguments[i]));
    // Python must not see the object that a constructor has not made yet.
    if (count > 0 && nb::cast<std::string>(of.attr("__name__")) == "__init__") positional[0] = nb::none();
    nb::dict named;
    const std::size_t n_named = names == nullptr ? 0 : nb::len(nb::handle(names));
    for (std::size_t i = 0; i < n_named; ++i) named[nb::handle(names)[i]] = nb::handle(arguments[count + i]);
    const nb::object better =
        nb::module_::import_("tessera._calls").attr("explain")(of, positional, named, nb::handle(raised.value()));
    if (!better.is_none()) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(better.ptr())), better.ptr());
      return;
    }
  } catch (...) {  // the first error stays
  }
  raised.restore();
}

template <std::size_t i>
PyObject* checked(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) {
  PyObject* result = entries[i](function, arguments, count, names);
  if (result == nullptr) [[unlikely]] explain(function, arguments, count, names);
  return result;
}

template <std::size_t... i>
constexpr std::array<Entry, kMostEntries> checked_entries(std::index_sequence<i...>) {
  return {&checked<i>...};
}
constexpr auto kChecked = checked_entries(std::make_index_sequence<kMostEntries>());

// Returns the checked entry of an entry; nullptr if there are more entries than expected.
Entry checked_entry(Entry entry) {
  for (std::size_t i = 0; i < kMostEntries; ++i) {
    if (entries[i] == nullptr) entries[i] = entry;
    if (entries[i] == entry) return kChecked[i];
  }
  return nullptr;
}

// Puts the checked entry into a function of nanobind. A function has its entry as a member, whose value the attribute
// __vectorcalloffset__ reads. If the member is not found, the function keeps nanobind's own errors.
void check(nb::handle function) {
  const std::string kind = nb::cast<std::string>(nb::handle(function.type()).attr("__name__"));
  if ((kind != "nb_func" && kind != "nb_method") || !nb::hasattr(function, "__vectorcalloffset__")) return;
  const auto value = [&] { return nb::cast<std::size_t>(function.attr("__vectorcalloffset__")); };
  const std::size_t entry = value();
  auto* words = reinterpret_cast<std::size_t*>(function.ptr());
  for (std::size_t i = 2; i < 5; ++i) {
    if (words[i] != entry) continue;
    const Entry instead = checked_entry(reinterpret_cast<Entry>(entry));
    if (instead == nullptr) return;
    words[i] = reinterpret_cast<std::size_t>(instead);
    if (value() != words[i]) words[i] = entry;
    return;
  }
}

int refuse_to_construct(PyObject* self, PyObject*, PyObject*) {
  try {
    const nb::object words = nb::module_::import_("tessera._calls").attr("no_constructor")(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(self))));
    PyErr_SetString(PyExc_TypeError, nb::cast<std::string>(words).c_str());
  } catch (nb::python_error& error) {
    error.restore();
  }
  return -1;
}

}  // namespace

void explain_wrong_calls(nb::module_& m) {
  for (const nb::handle one : m.attr("__dict__").attr("values")()) {
    if (!nb::isinstance<nb::type_object>(one)) continue;
    for (const nb::handle member : one.attr("__dict__").attr("values")())
      check(nb::hasattr(member, "__func__") ? nb::object(member.attr("__func__")) : nb::borrow(member));
  }
}

nb::type_slots no_constructor() {
  static PyType_Slot slots[] = {{Py_tp_init, reinterpret_cast<void*>(&refuse_to_construct)}, {0, nullptr}};
  return nb::type_slots(slots);
}

void raise_type(const std::string& where, const std::string& name, const std::string& expected, nb::handle got) {
  const nb::object kind = nb::module_::import_("tessera._calls").attr("kind_of")(got);
  throw nb::type_error((where + ": " + name + " is " + expected + ", not " + nb::cast<std::string>(kind)).c_str());
}

void check_callable(nb::handle object, const std::string& where, const std::string& name, bool or_bool) {
  if (object.is_none() || PyCallable_Check(object.ptr()) != 0 || (or_bool && nb::isinstance<nb::bool_>(object))) return;
  raise_type(where, name, or_bool ? "a callable, True, False or None" : "a callable or None", object);
}

}  // namespace tessera::python
