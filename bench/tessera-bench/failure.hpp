// Exceptions that end this program. The library reports errors as values; value(), check() and fail() turn them into exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::bench {

// The command line makes no sense. Exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Any other error. Exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ctrl-C. The results so far have been printed. Exit status 130.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

[[noreturn]] inline void fail(const Error& error) {
  if (error.code() == ErrorCode::cancelled) throw Interrupted();
  throw Failure(error.text());
}

template <class T>
[[nodiscard]] T value(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}
inline void check(const Status& status) {
  if (!status) fail(status.error());
}

}  // namespace tessera::bench
