// One line of Backend::explain(): an operation, and the kernel that computes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/core/dtype.hpp>

namespace tessera::backend {

// Operations, as explain() groups them, and facts of the machine that explain() lists with them.
enum class Operation : std::uint8_t {
  instruction_set,
  fused_multiply_add,
  device,
  work,  // facts of the machine
  linear,
  attention,
  score_softcap,
  sink_logits,
  append_kv,
  embed,
  add_positions,
  routing,
  norm,
  rope,
  activation,
  residual,
  sampling
};

[[nodiscard]] constexpr std::string_view to_string(Operation operation) noexcept {
  switch (operation) {
    case Operation::instruction_set:
      return "instruction set";
    case Operation::fused_multiply_add:
      return "fused multiply-add";
    case Operation::device:
      return "device";
    case Operation::work:
      return "work";
    case Operation::linear:
      return "linear";
    case Operation::attention:
      return "attention";
    case Operation::score_softcap:
      return "softcap of scores";
    case Operation::sink_logits:
      return "sink logits";
    case Operation::append_kv:
      return "append_kv";
    case Operation::embed:
      return "embed";
    case Operation::add_positions:
      return "add_positions";
    case Operation::routing:
      return "routing";
    case Operation::norm:
      return "norm";
    case Operation::rope:
      return "rope";
    case Operation::activation:
      return "activation";
    case Operation::residual:
      return "residual";
    case Operation::sampling:
      return "sampling";
  }
  return "?";
}

struct Explanation {
  Operation operation = Operation::linear;
  std::string detail = {};               // follows the operation's name for readers: " (7 matrices)", ", few rows"
  std::string kernel = {}, family = {};  // empty family: a fact of the machine, not an operation
  // The type of the weights or of the KV cache. DType::automatic stands for all KV types of the engine; nullopt: the
  // line has no type.
  std::optional<DType> dtype = {};
  std::string fallback = {};  // why a slower kernel was taken than the machine could run; empty: the best one was taken
};

// Returns the operation and its detail, for readers. Decisions are made by `operation`, not by this text.
[[nodiscard]] inline std::string text_of(const Explanation& line) {
  return std::string(to_string(line.operation)) + line.detail;
}

}  // namespace tessera::backend
