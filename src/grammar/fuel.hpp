// Bounds the work of compiling and matching. If the fuel is used up, an exception is thrown inside src/grammar, so that deep recursions
// need not pass a Status. The public functions turn the exception into an error (guard_fuel() below).
#pragma once

#include <cstdint>
#include <string>

#include <tessera/core/result.hpp>

#include "core/error.hpp"
#include "core/guard.hpp"

namespace tessera::grammar {

// The exception that carries an error from the grammar code to the public function.
struct Failure {
  Error error;
};

[[noreturn]] inline void fail(ErrorCode code, std::string message, std::string place = {}) {
  throw Failure{Error(code, std::move(message), std::move(place))};
}

[[noreturn]] inline void out_of_fuel(const char* what) {
  fail(ErrorCode::over_budget,
       std::string("the grammar is too large or too ambiguous: ") + what + "; simplify it or raise its limits");
}

// Counts down the elementary steps that may still be done.
class Fuel {
 public:
  explicit Fuel(std::uint64_t steps) noexcept : left_(steps) {}
  void spend(std::uint64_t steps, const char* what) {
    if (steps > left_) out_of_fuel(what);
    left_ -= steps;
  }
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

 private:
  std::uint64_t left_;
};

// Runs fn() like detail::guard(), which turns exceptions into an error. Handles Failure too.
template <class Fn>
auto guard_fuel(Fn&& fn) noexcept -> std::invoke_result_t<Fn> {
  return detail::guard([&]() -> std::invoke_result_t<Fn> {
    try {
      return fn();
    } catch (Failure& failure) {
      return std::move(failure.error);
    }
  });
}

}  // namespace tessera::grammar
