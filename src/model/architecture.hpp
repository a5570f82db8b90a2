// An architecture is a table: which tensors it has, how its block is wired, and where it differs from Llama in the
// metadata. One forward pass reads what the table says. To add one: write its table and put it into architectures.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/model/model_spec.hpp>

#include "model/roles.hpp"

namespace tessera {

enum class Presence : std::uint8_t { absent, optional, required };

// Presence by role. Start from nothing and say what there is.
struct TensorTable {
  std::array<Presence, kRoles> presence{};

  template <class... Roles>
  [[nodiscard]] constexpr TensorTable required(Roles... roles) const noexcept {
    TensorTable table = *this;
    ((table.presence[static_cast<std::size_t>(roles)] = Presence::required), ...);
    return table;
  }
  template <class... Roles>
  [[nodiscard]] constexpr TensorTable optional(Roles... roles) const noexcept {
    TensorTable table = *this;
    ((table.presence[static_cast<std::size_t>(roles)] = Presence::optional), ...);
    return table;
  }
  [[nodiscard]] constexpr Presence operator[](Role role) const noexcept {
    return presence[static_cast<std::size_t>(role)];
  }
};

// What multiplies embeddings, branches of the residual stream and logits.
enum class Scales : std::uint8_t {
  none,
  root_of_width,  // embeddings by sqrt(d_model)
  in_metadata,    // embedding_scale, residual_scale, and 1 / logit_scale
};

// Models that mix layers with a sliding window and layers that see everything.
struct MixedWindows {
  std::uint32_t period = 0;       // every so many layers, the last sees everything; 0: all layers are alike
  double windowed_theta = 10000;  // rope base of those with a window, whose positions are never scaled
};

struct Architecture {
  std::string_view name;  // general.architecture, and the prefix of its keys
  NormKind norm;
  Block block;
  Ffn ffn;
  ActivationKind activation;
  Positions positions;
  RopePairs rope_pairs;
  TensorTable tensors;
  Scales scales = Scales::none;
  MixedWindows windows = {};
  // The model of so many layers scales scores by 1 / sqrt(d_model / n_heads), whatever its heads' size. 0: there is none.
  std::uint32_t layers_scaled_by_width = 0;
};

// The tensors of a Llama-like model: RMSNorm, separate Q, K and V, gated FFN, no biases but those that are optional.
inline constexpr TensorTable kLlamaTensors =
    TensorTable{}
        .required(Role::token_embd, Role::output_norm, Role::attn_norm, Role::attn_q, Role::attn_k, Role::attn_v,
                  Role::attn_output, Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
        .optional(Role::output, Role::rope_freqs);  // without `output`, token_embd serves for both

}  // namespace tessera
