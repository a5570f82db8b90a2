// The budget of one rendering, and the errors that end a rendering.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::jinja {

// An error on its way. Thrown inside the evaluator only; ChatTemplate turns it into an Error.
struct Failure {
  ErrorCode code;
  std::string message;
  std::uint32_t line = 0;      // 0: not known yet; the evaluator fills it in
  std::string construct = {};  // "{% for %}", "the filter 'trim'"
};

[[noreturn]] inline void fail(std::string message, ErrorCode code = ErrorCode::invalid_argument) {
  throw Failure{code, std::move(message)};
}

class Budget {
 public:
  Budget(std::uint64_t steps, std::uint64_t memory) noexcept : steps_(steps), memory_(memory) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void spend(std::uint64_t steps) {
    if (steps > steps_) fail("the template takes too many steps: RenderLimits::steps", ErrorCode::over_budget);
    steps_ -= steps;
  }
  // Spends steps for work on bytes: copying, comparing, searching.
  void spend_on(std::size_t bytes) { spend(1 + bytes / 128); }

  void take(std::uint64_t bytes) {
    if (bytes > memory_) fail("the template needs too much memory: RenderLimits::memory_bytes", ErrorCode::over_budget);
    memory_ -= bytes;
  }
  void give_back(std::uint64_t bytes) noexcept { memory_ += bytes; }
  // Fails if a value of this size would exceed the memory. Call it before the value is made.
  void check(std::uint64_t bytes) {
    take(bytes);
    give_back(bytes);
  }

 private:
  std::uint64_t steps_, memory_;
};

}  // namespace tessera::jinja
