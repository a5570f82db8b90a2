// How a run ends badly: exceptions inside this program, where the library has errors as values.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::bench {

// Exit status 2: the command line asks for something that makes no sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Exit status 130: Ctrl-C. What was measured before it has been printed.
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
