// What a model's steps cost whatever computes them: bytes that must come from memory, and operations. Nominal: work
// that an engine need not do for what was asked (most rows of a prompt's last layer) counts.
#pragma once

#include <cstdint>

#include <tessera/engine.hpp>
#include <tessera/io/model_file.hpp>

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
  // Of one row that sees `keys` keys, in all layers.
  [[nodiscard]] double kv_bytes(std::uint32_t keys) const noexcept;
  [[nodiscard]] double attention_flop(std::uint32_t keys) const noexcept;

  ModelSpec spec_;
  double streamed_bytes_ = 0, output_bytes_ = 0;     // of all weights of a step; of the output matrix among them
  double layer_weights_ = 0, output_weights_ = 0;    // numbers of the matrices
  double kv_per_layer_ = 0;                          // bytes a token
};

}  // namespace tessera::bench
