// One line of Backend::explain(): an operation, and the kernel that computes it.
#pragma once

#include <optional>
#include <string>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/core/operation.hpp>

namespace tessera::backend {

struct Explanation {
  Operation operation = Operation::linear;
  std::string detail = {};               // follows the operation's name for readers: " (7 matrices)", ", few rows"
  std::string kernel = {}, family = {};  // empty family: a fact of the machine, not an operation
  // The type of the weights or of the KV cache. DType::automatic stands for all KV types of the engine; nullopt: the
  // line has no type.
  std::optional<DType> dtype = {};
  std::string fallback = {};  // why a slower kernel was chosen than the best one that the machine runs; empty: the best one was chosen
};

// Returns the operation's name and the detail, as text for people. Code that decides by the operation must read `operation`, not this
// text.
[[nodiscard]] inline std::string text_of(const Explanation& line) {
  return std::string(to_string(line.operation)) + line.detail;
}

}  // namespace tessera::backend
