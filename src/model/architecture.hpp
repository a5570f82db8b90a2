// An architecture is a table: its tensors, the wiring of its block, and its differences from Llama in the settings. The one forward pass
// follows the table. To add an architecture: write its table and put it into architectures.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/extend/model/model_spec.hpp>

#include "model/load/roles.hpp"

namespace tessera {

enum class Presence : std::uint8_t { absent, optional, required };

// For each role: whether a model's file lacks, may have, or must have a tensor with this role. Begin with an empty table, and add the
// tensors that a file has.
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
  template <class... Roles>
  [[nodiscard]] constexpr TensorTable without(Roles... roles) const noexcept {
    TensorTable table = *this;
    ((table.presence[static_cast<std::size_t>(roles)] = Presence::absent), ...);
    return table;
  }
  [[nodiscard]] constexpr Presence operator[](Role role) const noexcept {
    return presence[static_cast<std::size_t>(role)];
  }
};

// The factors of embeddings, branches of the residual stream and logits.
enum class Scales : std::uint8_t {
  none,
  root_of_width,  // embeddings times sqrt(d_model)
  in_metadata,    // embeddings times embedding_scale, branches times residual_scale, logits times 1 / logit_scale
  logits,         // logits times logit_scale
};

// The rotation of layers with a sliding window, in models in which other layers see everything.
enum class WindowedRope : std::uint8_t {
  shared,    // as in the other layers
  unscaled,  // with a base of their own, or the other layers' base; positions are never scaled
  alone,     // the other layers do not rotate
};

// The windows of models that mix layers with a sliding window and layers that see everything.
struct MixedWindows {
  std::uint32_t period = 0;  // N: every N-th layer sees everything; 0: all layers are alike
  WindowedRope rope = WindowedRope::shared;
  double theta = 0;          // base of WindowedRope::unscaled if the file does not say; 0: the other layers' base
  std::uint32_t length = 0;  // tokens of the windows if the file does not say; 0: then there are no windows
};

// Softcaps if the file does not say; 0: none.
struct Softcaps {
  double scores = 0, logits = 0;
};

// The pairs with which YaRN's ramp begins and ends: as computed, or rounded outwards to whole pairs.
enum class YarnRamp : std::uint8_t { whole_pairs, exact };

// The experts of files that have a number of experts.
struct Experts {
  bool some = false;  // files may have experts
  RoutingKind routing = RoutingKind::softmax;     // if the file does not say
  Renormalise renormalise = Renormalise::yes;     // if the file does not say
  Ffn ffn = Ffn::experts;                         // the FFN of layers with experts
  GroupScore softmax_groups = GroupScore::two_best;  // score of groups if the experts' scores are a softmax
};

// The way in which a file marks its recurrent layers.
enum class RecurrentLayers : std::uint8_t {
  none,
  interval,          // all but every full_attention_interval-th layer; or a list of booleans (recurrent_layers)
  no_kv_heads,       // layers without KV heads
  neither_kv_heads_nor_feed,  // layers with neither KV heads nor an FFN; a layer with an FFN is that FFN alone
};

struct RecurrentMixers {
  RecurrentLayers layers = RecurrentLayers::none;
  Mixer mixer = Mixer::attention;
  StateGroups group_order = StateGroups::blocks;
};

struct Architecture {
  std::string_view name;  // general.architecture, and the prefix of its keys
  NormKind norm;
  Wiring wiring;
  Ffn ffn;
  ActivationKind activation;
  Positions positions;
  RopePairs rope_pairs;
  TensorTable tensors;
  Scales scales = Scales::none;
  MixedWindows windows = {};
  // The model with this number of layers scales scores by 1 / sqrt(d_model / n_heads), whatever its heads' size. 0: no model does.
  std::uint32_t layers_scaled_by_width = 0;
  std::uint32_t unrotated_period = 0;  // N: every N-th layer does not rotate; 0: all rotate
  HeadNorms head_norms = HeadNorms::each;
  HeadNormPlace head_norm_place = HeadNormPlace::before_rope;
  Experts experts = {};
  bool has_temperature = false;                // queries may grow with their position
  double temperature = 0;                      // their rate of growth if the file does not say; 0: they do not grow
  Softcaps softcaps = {};
  Sinks sinks = Sinks::none;
  YarnRamp yarn_ramp = YarnRamp::whole_pairs;
  RecurrentMixers recurrent = {};
  OutputGate output_gate = OutputGate::none;
  bool rotates_if_said = false;                // heads rotate only if the file says rope.scaling.finetuned
  bool is_latent = false;                      // attention keeps a latent of each token
  double score_scale = 0;                      // if the file does not say; 0: 1 / sqrt(key_dim)
  ValueNorm value_norm = ValueNorm::none;
  bool shares_keys = false;                    // some files have layers that read an earlier layer's keys and values
  bool has_per_layer_inputs = false;           // some files have an embedding of each token for each layer
  bool guesses_further = false;                // some files have MTP heads behind the last layer: with_mtp_heads()
};

// The tensors of a Llama-like model: RMSNorm, separate Q, K and V, gated FFN, no biases.
inline constexpr TensorTable kLlamaTensors =
    TensorTable{}
        .required(Role::token_embd, Role::output_norm, Role::attn_norm, Role::attn_q, Role::attn_k, Role::attn_v,
                  Role::attn_output, Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
        .optional(Role::output, Role::rope_freqs);  // without `output`, token_embd serves for both

// Adds the tensors of layers with experts, and of the shared expert, which a file has if it says so. Converters may fuse gates and ups.
inline constexpr TensorTable with_experts(TensorTable table) noexcept {
  return table
      .required(Role::router, Role::experts_gate, Role::experts_up, Role::experts_down, Role::shared_gate, Role::shared_up,
                Role::shared_down)
      .optional(Role::experts_gate_up, Role::shared_weight);
}

// Adds the tensors that MTP heads have beside a layer's. A head without an embedding, output or norm of its own takes the model's.
inline constexpr TensorTable with_mtp_heads(TensorTable table) noexcept {
  return table.required(Role::mtp_token_norm, Role::mtp_hidden_norm, Role::mtp_in)
      .optional(Role::mtp_token_embd, Role::mtp_output_norm, Role::mtp_output);
}

// The tensors of a Llama-like model with norms behind attention and FFN instead of before them.
inline constexpr TensorTable kPostNormTensors =
    kLlamaTensors.without(Role::attn_norm, Role::ffn_norm).required(Role::attn_post_norm, Role::ffn_post_norm);

inline constexpr TensorTable with_attention_biases(TensorTable table) noexcept {
  return table.optional(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias, Role::attn_output_bias);
}

}  // namespace tessera
