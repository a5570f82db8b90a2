// How a run ends badly. The library reports errors as values; a program of this size is easier to read with exceptions,
// and value() turns the one into the other.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

// Exit status 2: the command line asks for something that makes no sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Exit status 1, or 130 for `cancelled`, which is what Ctrl-C leads to.
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
