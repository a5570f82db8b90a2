// The shapes of well-known models, so that their speed can be measured without their files.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/architecture.hpp"

namespace tessera::bench {

// The shape of the recurrent layers. For a short convolution only conv_width counts; the other numbers are those of GGUF's keys ssm.*.
struct RecurrentShape {
  std::string_view layers = {};  // the pattern of the layers, repeated: r a recurrent layer, a attention; empty: no recurrent layers
  std::uint32_t conv_width = 0, heads = 0, groups = 0, keys = 0, values = 0;

  [[nodiscard]] constexpr bool at(std::uint32_t layer) const noexcept {
    return !layers.empty() && layers[layer % layers.size()] == 'r';
  }
};

// The widths of latent attention, whose layers have one KV head. rank: elements of the latent. turned, plain: elements of a head's query
// that are rotated by position, and elements that are not. value: elements of a head's value. query_rank: if two products make the queries,
// the elements between the two; 0: one product makes the queries.
struct LatentShape {
  std::uint32_t rank = 0, turned = 0, plain = 0, value = 0, query_rank = 0;  // rank 0: attention is not latent
};

// The FFNs without experts (dense FFNs) of a model with experts. layers: how many layers at the beginning have only a dense FFN. ffn: its
// inner width. shared: inner width of the dense FFN that all tokens use in the other layers, beside their experts.
struct DenseShape {
  std::uint32_t layers = 0, ffn = 0, shared = 0;
};

struct Shape {
  std::string_view name;   // the name for --shape
  std::string_view model;  // the model that has this shape
  const Architecture* architecture;
  std::uint32_t d_model, layers, heads, kv_heads, head_dim, ffn, vocab;  // ffn: inner width of an expert, if the model has experts
  std::uint32_t context;   // tokens of the longest context that the model was made for
  double rope_theta;       // not used with learned positions
  bool tied;               // true: the embedding table is the output matrix too
  std::uint32_t experts = 0, used = 0;  // experts of a layer; experts that a token takes
  RecurrentShape recurrent = {};
  LatentShape latent = {};
  DenseShape dense = {};
  std::uint32_t mtp_heads = 0;  // number of MTP heads after the layers; each has the shape of the last attention layer
};

[[nodiscard]] std::span<const Shape> shapes() noexcept;
[[nodiscard]] const Shape* find_shape(std::string_view name) noexcept;  // nullptr: there is none

}  // namespace tessera::bench
