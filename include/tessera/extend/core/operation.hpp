// The operations that Engine::explain() lists, with the kernel of each.
//
//   auto uses = engine.explain();
//   for (std::size_t i = 0; uses && i < uses->size(); ++i) {
//     if ((*uses)[i].kind == tessera::Operation::attention) std::puts((*uses)[i].kernel.c_str());
//   }
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Operations of a model, facts about the machine, and other work of an engine.
enum class Operation : std::int32_t {
  // --- The machine.
  instruction_set = 0,
  fused_multiply_add = 1,
  device = 2,
  work = 3,  // how work is divided among threads
  // --- The model.
  linear = 4,  // products with weight matrices
  attention = 5,
  score_softcap = 6,
  sink_logits = 7,
  append_kv = 8,
  embed = 9,
  add_positions = 10,
  routing = 11,
  norm = 12,
  rope = 13,
  activation = 14,
  residual = 15,
  sampling = 16,
  // --- The engine.
  rope_factors = 17,     // which of a model's two lists of rope factors the context needs
  guess_tokens = 18,     // draft heads of the model's file
  exchange_rows = 19,    // exchange of rows between ranks
  suppress_tokens = 20,  // tokens that are never drawn, because the model's file says so
  pre_tokenize = 21,     // an assumption about the tokenizer
};

// Returns the operation's name, as it is printed: "softcap of scores".
[[nodiscard]] constexpr std::string_view to_string(Operation operation) noexcept {
  switch (operation) {
    case Operation::instruction_set: return "instruction set";
    case Operation::fused_multiply_add: return "fused multiply-add";
    case Operation::device: return "device";
    case Operation::work: return "work";
    case Operation::linear: return "linear";
    case Operation::attention: return "attention";
    case Operation::score_softcap: return "softcap of scores";
    case Operation::sink_logits: return "sink logits";
    case Operation::append_kv: return "append_kv";
    case Operation::embed: return "embed";
    case Operation::add_positions: return "add_positions";
    case Operation::routing: return "routing";
    case Operation::norm: return "norm";
    case Operation::rope: return "rope";
    case Operation::activation: return "activation";
    case Operation::residual: return "residual";
    case Operation::sampling: return "sampling";
    case Operation::rope_factors: return "rope factors";
    case Operation::guess_tokens: return "guess further tokens";
    case Operation::exchange_rows: return "exchange rows";
    case Operation::suppress_tokens: return "suppress tokens";
    case Operation::pre_tokenize: return "pre_tokenize";
  }
  return "?";
}

}  // namespace tessera
