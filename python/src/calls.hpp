// Calls with wrong arguments: their errors name the argument, in Python's words (tessera/_calls.py has the words).
#pragma once

#include <string>

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace tessera::python {

// Makes every function of the module's classes explain a call whose arguments do not fit its signature. Call it when all
// classes are bound.
void explain_wrong_calls(nb::module_& m);

// Makes the call of a class without a constructor say where its objects come from.
nb::type_slots no_constructor();

// Throws TypeError: "`where`: `name` is `expected`, not a ...".
[[noreturn]] void raise_type(const std::string& where, const std::string& name, const std::string& expected, nb::handle got);

// Throws TypeError unless the object is None or a callable, or, with `or_bool`, True or False.
void check_callable(nb::handle object, const std::string& where, const std::string& name, bool or_bool = false);

}  // namespace tessera::python
