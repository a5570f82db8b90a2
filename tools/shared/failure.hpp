// Exceptions that end a program. The library reports errors as values. Small programs are easier to read with exceptions, so value() turns
// an error into an exception.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

// Exit status 2: the command line makes no sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Exit status 1, or 130 for `cancelled`, the result of Ctrl-C.
struct Failure : std::runtime_error {
  explicit Failure(const tessera::Error& error) : std::runtime_error(error.text()), code(error.code()) {}
  Failure(tessera::ErrorCode why, const std::string& what) : std::runtime_error(what), code(why) {}

  tessera::ErrorCode code;
};

template <class T>
[[nodiscard]] T value(tessera::Result<T> result) {
  if (!result) throw Failure(result.error());
  return std::move(*result);
}
