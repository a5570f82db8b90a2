// Budget limits what one rendering may use, and Failure is the error that ends a rendering.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::jinja {

// An error that is thrown inside the evaluator. ChatTemplate catches it and turns it into an Error.
struct Failure {
  ErrorCode code;
  std::string message;
  std::uint32_t line = 0;      // 0: not known yet; the evaluator fills it in on the way
  std::string construct = {};  // the construct that failed: "{% for %}", "the filter 'trim'"
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
  // Spends steps for copying, comparing or searching this many bytes.
  void spend_on(std::size_t bytes) { spend(1 + bytes / 128); }

  void take(std::uint64_t bytes) {
    if (bytes > memory_) fail("the template needs too much memory: RenderLimits::memory_bytes", ErrorCode::over_budget);
    memory_ -= bytes;
  }
  void give_back(std::uint64_t bytes) noexcept { memory_ += bytes; }
  // Fails if there is not enough memory left for a value of this size. Call it before making the value.
  void check(std::uint64_t bytes) {
    take(bytes);
    give_back(bytes);
  }

 private:
  std::uint64_t steps_, memory_;
};

}  // namespace tessera::jinja
