// Turns errors of the library into exceptions of tessera._errors, one class for each ErrorCode.
#pragma once

#include <string_view>
#include <utility>

#include <nanobind/nanobind.h>

#include <tessera/core/result.hpp>

namespace nb = nanobind;

namespace tessera::python {

// Throws the exception of the error's code. The caller holds the GIL.
[[noreturn]] void raise(const Error& error);
[[noreturn]] void raise(ErrorCode code, std::string_view message);

// Returns the value of a Result, or throws its error.
template <class T>
T take(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace tessera::python
