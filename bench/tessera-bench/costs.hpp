// What a model's steps cost whatever computes them: bytes that must come from memory, and operations. Nominal: work
// that an engine need not do for what was asked (most rows of a prompt's last layer) counts. Rows are taken to choose their
// experts independently: of E, of which a row takes k, a step of n rows reads E (1 - (1 - k/E)^n).
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>
#include <tessera/files/model_file.hpp>

namespace tessera::bench {

struct Cost {
  double bytes = 0;  // weights as the file has them, and keys and values; not the embedding table
  double flop = 0;   // of matrices and attention
};

class ModelCosts {
 public:
  ModelCosts(const ModelFile& file, const Engine& engine);

  // A prompt of `tokens` from an empty context, `step_rows` at a time; logits of its last token.
  [[nodiscard]] Cost prefill(std::uint32_t tokens, std::uint32_t step_rows) const noexcept;
  // `steps` tokens of each of `sequences` that have `position` tokens; logits of all.
  [[nodiscard]] Cost decode(std::uint32_t sequences, std::uint32_t position, std::uint32_t steps) const noexcept;

 private:
  // Of all weights that a step of so many rows reads.
  [[nodiscard]] double weight_bytes(std::uint32_t rows) const noexcept;
  // Of one row that sees `keys` keys, in all layers.
  [[nodiscard]] double kv_bytes(std::uint32_t keys) const noexcept;
  [[nodiscard]] double attention_flop(std::uint32_t keys) const noexcept;

  ModelSpec spec_;
  double streamed_bytes_ = 0, output_bytes_ = 0;     // of all weights of a step of one row; of the output matrix among them
  double expert_bytes_ = 0, used_share_ = 1;         // of all experts; how many of them a row takes
  double layer_weights_ = 0, output_weights_ = 0;    // numbers of the matrices, of experts those that a row takes
  double kv_per_layer_ = 0;                          // bytes a token
};

}  // namespace tessera::bench
