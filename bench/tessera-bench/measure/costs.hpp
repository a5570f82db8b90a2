// Computes the cost of a model's steps, for any engine: bytes that must be read from memory, and floating-point operations. The costs are
// nominal: they include work that an engine can leave out, such as most rows of a prompt's last layer. Models with experts: it is assumed
// that rows choose experts independently of each other. If each row takes k of a layer's E experts, a step of n rows reads on average
// E (1 - (1 - k/E)^n) of them.
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>
#include <tessera/extend/files/model_file.hpp>

namespace tessera::bench {

struct Cost {
  double bytes = 0;  // bytes read: weights (in the file's formats), keys and values; the embedding table does not count
  double flop = 0;   // floating-point operations of matrix products and attention
};

class ModelCosts {
 public:
  ModelCosts(const ModelSource& model, const Engine& engine);

  // Returns the cost of a prompt of `tokens` tokens in an empty context, computed in steps of `step_rows`, with logits of its last token.
  [[nodiscard]] Cost prefill(std::uint32_t tokens, std::uint32_t step_rows) const noexcept;
  // Returns the cost of `steps` decode steps of `sequences` sequences, which have `position` tokens before, with logits of all rows.
  [[nodiscard]] Cost decode(std::uint32_t sequences, std::uint32_t position, std::uint32_t steps) const noexcept;

 private:
  // Returns the bytes of all weights that a step of `rows` rows reads.
  [[nodiscard]] double weight_bytes(std::uint32_t rows) const noexcept;
  // Return the bytes, and the operations of attention, in all layers, of one row that sees `keys` keys.
  [[nodiscard]] double kv_bytes(std::uint32_t keys) const noexcept;
  [[nodiscard]] double attention_flop(std::uint32_t keys) const noexcept;

  ModelSpec spec_;
  double streamed_bytes_ = 0, output_bytes_ = 0;     // bytes of all weights that a step of one row reads; of these, the output matrix's
  double expert_bytes_ = 0, used_share_ = 1;         // bytes of all experts; the share of the experts that a row takes
  double layer_weights_ = 0, output_weights_ = 0;    // number of weights that multiply one row: of all layers; of the output matrix
  double kv_per_layer_ = 0;                          // bytes of one token's keys and values in one layer
};

}  // namespace tessera::bench
