// An architecture is a table: which tensors it has, how its block is wired, and where it differs from Llama in the
// metadata. One forward pass reads what the table says. To add one: write its table and put it into architectures.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/extend/model/model_spec.hpp>

#include "model/load/roles.hpp"

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

// What multiplies embeddings, branches of the residual stream and logits.
enum class Scales : std::uint8_t {
  none,
  root_of_width,  // embeddings by sqrt(d_model)
  in_metadata,    // embedding_scale, residual_scale, and 1 / logit_scale
  logits,         // logit_scale
};

// How the layers with a sliding window rotate, where others see everything.
enum class WindowedRope : std::uint8_t {
  shared,    // as the others
  unscaled,  // with a base of their own, or that of the others; positions are never scaled
  alone,     // the others do not rotate
};

// Models that mix layers with a sliding window and layers that see everything.
struct MixedWindows {
  std::uint32_t period = 0;  // every so many layers, the last sees everything; 0: all layers are alike
  WindowedRope rope = WindowedRope::shared;
  double theta = 0;          // of unscaled ones, where the file does not say; 0: that of the others
  std::uint32_t length = 0;  // of the windows, where the file does not say; 0: there are none then
};

// What scores and logits are capped at where the file does not say; 0: not at all.
struct Softcaps {
  double scores = 0, logits = 0;
};

// Which pairs YaRN's ramp begins and ends with: as they come out, or whole ones around them.
enum class YarnRamp : std::uint8_t { whole_pairs, exact };

// Experts, of the files that say how many there are.
struct Experts {
  bool some = false;  // files may have them
  RoutingKind routing = RoutingKind::softmax;     // where the file does not say
  Renormalise renormalise = Renormalise::yes;     // likewise
  Ffn ffn = Ffn::experts;                         // of the layers that have them
  GroupScore softmax_groups = GroupScore::two_best;  // by what groups are judged where scores are a softmax
};

// How a file says which layers are recurrent.
enum class RecurrentLayers : std::uint8_t {
  none,
  interval,          // all but every so many: full_attention_interval; or an array
  no_kv_heads,       // those without KV heads
  neither_kv_heads_nor_feed,  // likewise, of layers that are a mixer or an FFN alone: what has an FFN is that
};

struct RecurrentMixers {
  RecurrentLayers layers = RecurrentLayers::none;
  Mixer mixer = Mixer::attention;
  StateGroups group_order = StateGroups::blocks;
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
  std::uint32_t unrotated_period = 0;  // every so many layers, the last does not rotate; 0: there are none such
  HeadNorms head_norms = HeadNorms::each;
  HeadNormPlace head_norm_place = HeadNormPlace::before_rope;
  Experts experts = {};
  bool has_temperature = false;                // queries grow with their position, where the file or the next field says
  double temperature = 0;                      // how fast, where the file does not say; 0: they do not grow
  Softcaps softcaps = {};
  Sinks sinks = Sinks::none;
  YarnRamp yarn_ramp = YarnRamp::whole_pairs;
  RecurrentMixers recurrent = {};
  OutputGate output_gate = OutputGate::none;
  bool rotates_if_said = false;                // heads rotate where the file says rope.scaling.finetuned
  bool is_latent = false;                      // attention keeps a latent of each token
  double score_scale = 0;                      // where the file does not say; 0: 1 / sqrt(key_dim)
  ValueNorm value_norm = ValueNorm::none;
  bool shares_keys = false;                    // some files have layers that read an earlier one's keys and values
  bool has_per_layer_inputs = false;           // some files have embeddings of each layer
  bool guesses_further = false;                // some files have layers behind the last for it: with_mtp_heads()
};

// The tensors of a Llama-like model: RMSNorm, separate Q, K and V, gated FFN, no biases but those that are optional.
inline constexpr TensorTable kLlamaTensors =
    TensorTable{}
        .required(Role::token_embd, Role::output_norm, Role::attn_norm, Role::attn_q, Role::attn_k, Role::attn_v,
                  Role::attn_output, Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
        .optional(Role::output, Role::rope_freqs);  // without `output`, token_embd serves for both

// Adds what layers with experts have; the shared one, where the file says that there is one. Converters may fuse gates and ups.
inline constexpr TensorTable with_experts(TensorTable table) noexcept {
  return table
      .required(Role::router, Role::experts_gate, Role::experts_up, Role::experts_down, Role::shared_gate, Role::shared_up,
                Role::shared_down)
      .optional(Role::experts_gate_up, Role::shared_weight);
}

// Adds what MTP heads have beside what layers have. Those without an embedding, output or norm of their own take the model's.
inline constexpr TensorTable with_mtp_heads(TensorTable table) noexcept {
  return table.required(Role::mtp_token_norm, Role::mtp_hidden_norm, Role::mtp_in)
      .optional(Role::mtp_token_embd, Role::mtp_output_norm, Role::mtp_output);
}

// The same with a norm behind attention and FFN instead of one before them.
inline constexpr TensorTable kPostNormTensors =
    kLlamaTensors.without(Role::attn_norm, Role::ffn_norm).required(Role::attn_post_norm, Role::ffn_post_norm);

inline constexpr TensorTable with_attention_biases(TensorTable table) noexcept {
  return table.optional(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias, Role::attn_output_bias);
}

}  // namespace tessera
