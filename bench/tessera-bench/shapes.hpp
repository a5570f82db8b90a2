// The shapes of models that people know, so that a speed can be measured without the model.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/architecture.hpp"

namespace tessera::bench {

// Of the layers that are recurrent: their heads, as GGUF's ssm.* say them, or a short convolution's width alone.
struct RecurrentShape {
  std::string_view layers = {};  // a letter a layer, again from the start behind the last: r recurrent, a attention; empty: none are
  std::uint32_t conv_width = 0, heads = 0, groups = 0, keys = 0, values = 0;

  [[nodiscard]] constexpr bool at(std::uint32_t layer) const noexcept {
    return !layers.empty() && layers[layer % layers.size()] == 'r';
  }
};

// Of latent attention, whose layers have one KV head: sizes of the latent, of what rotates of a head and what does not, of a head's
// value, and of the two products that make queries (0: it is one).
struct LatentShape {
  std::uint32_t rank = 0, turned = 0, plain = 0, value = 0, query_rank = 0;  // rank 0: attention is not latent
};

// Dense layers in front of those with experts, and the FFN that all tokens take beside them.
struct DenseShape {
  std::uint32_t layers = 0, ffn = 0, shared = 0;
};

struct Shape {
  std::string_view name;   // as --shape takes it
  std::string_view model;  // whose shape it is
  const Architecture* architecture;
  std::uint32_t d_model, layers, heads, kv_heads, head_dim, ffn, vocab;  // ffn: of an expert, where there are experts
  std::uint32_t context;   // what the model was made for
  double rope_theta;       // without a meaning for learned positions
  bool tied;               // the embedding is the output matrix too
  std::uint32_t experts = 0, used = 0;  // of a layer; of which a token takes so many
  RecurrentShape recurrent = {};
  LatentShape latent = {};
  DenseShape dense = {};
  std::uint32_t mtp_heads = 0;  // behind the layers, each like the last that is attention
};

[[nodiscard]] std::span<const Shape> shapes() noexcept;
[[nodiscard]] const Shape* find_shape(std::string_view name) noexcept;  // nullptr: there is none

}  // namespace tessera::bench
