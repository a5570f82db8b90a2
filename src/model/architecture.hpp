// An architecture is described by a table: the tensors that its files have, how norm, attention and FFN are connected in a layer, and
// what differs from Llama. All architectures share one forward pass, which follows the table. To add an architecture: write its table,
// and add it to architectures.hpp.
//
// Words in the comments of the tables:
// - *The converter* is llama.cpp's program that makes a GGUF file from a published model.
// - A *rope pair* is two elements of a head that rope rotates together. The elements of a pair (2i, 2i+1) are neighbours. In a pair
//   (i, i + d/2), d is the number of elements of the head that rotate. In both kinds i counts from 0 to d/2 - 1.
// - Experts are *chosen* by their scores, and their outputs are *weighted*. A *bias for the choice* is added to the scores when experts
//   are chosen, but not to their weights. *Renormalised*: the weights of the chosen experts are divided by their sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tessera/extend/model/model_spec.hpp>

#include "model/load/roles.hpp"

namespace tessera {

enum class Presence : std::uint8_t { absent, optional, required };

// Says for each role whether a model's file must have the tensor (required), may have it (optional) or does not have it (absent). To make
// a TensorTable, begin with an empty one, in which all are absent, and add the tensors that a file has.
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

// The factors by which embeddings, branches and logits are multiplied. A branch is what attention or the FFN adds to the residual stream.
enum class Scales : std::uint8_t {
  none,
  root_of_width,  // embeddings times sqrt(d_model)
  in_metadata,    // embeddings times embedding_scale, branches times residual_scale, logits times 1 / logit_scale
  logits,         // logits times logit_scale
};

// The rope of layers with a sliding window, in a model whose other layers see everything.
enum class WindowedRope : std::uint8_t {
  shared,    // the same rope as in the other layers
  unscaled,  // may have another base, and its positions are never scaled (linear, YaRN, ...)
  alone,     // only the windowed layers rotate
};

// Windows of models in which some layers have a sliding window, and the others see everything.
struct MixedWindows {
  std::uint32_t period = 0;  // N: every N-th layer sees everything; 0: all layers are alike
  WindowedRope rope = WindowedRope::shared;
  double theta = 0;          // base for WindowedRope::unscaled if the file does not state it; 0: the other layers' base
  std::uint32_t length = 0;  // default number of tokens in a window, for files that do not state it; 0: these files have no windows
  bool first_sees_all = false;  // true: the first of each N layers sees everything, not the last
};

// Softcaps for files that do not state them; 0: no softcap.
struct Softcaps {
  double scores = 0, logits = 0;
};

// The ends of YaRN's ramp. The ramp is the range of rope pairs in which the divisor of the frequencies grows from 1 (before the ramp) to
// YaRN's factor (after it). whole_pairs: the ends are rounded outwards to whole pairs. exact: the ends may be fractions.
enum class YarnRamp : std::uint8_t { whole_pairs, exact };

// Mixtures of experts. A model has experts if its file states a number of them.
struct Experts {
  bool some = false;  // true: files of this architecture may have experts
  RoutingKind routing = RoutingKind::softmax;     // default, for files that do not say
  Renormalise renormalise = Renormalise::yes;     // default, for files that do not say
  Ffn ffn = Ffn::experts;                         // the kind of FFN in layers with experts
  GroupScore softmax_groups = GroupScore::two_best;  // the score of a group of experts if the experts' scores are a softmax
};

// The way in which a file says which layers are recurrent.
enum class RecurrentLayers : std::uint8_t {
  none,
  interval,          // a number N: every N-th layer is attention, all others are recurrent; or a list of booleans (true: recurrent)
  no_kv_heads,       // the layers for which the file gives 0 KV heads
  neither_kv_heads_nor_feed,  // the layers for which the file gives 0 KV heads and no FFN; a layer with an FFN has no mixer
};

struct RecurrentMixers {
  RecurrentLayers layers = RecurrentLayers::none;
  Mixer mixer = Mixer::attention;
  StateGroups group_order = StateGroups::blocks;
};

struct Architecture {
  std::string_view name;  // the value of general.architecture, which is also the prefix of the file's keys
  NormKind norm;
  Wiring wiring;
  Ffn ffn;
  ActivationKind activation;
  Positions positions;
  RopePairs rope_pairs;
  TensorTable tensors;
  Scales scales = Scales::none;
  MixedWindows windows = {};
  // A model with this number of layers scales scores by 1 / sqrt(d_model / n_heads) instead of 1 / sqrt(key_dim). 0: no model does.
  std::uint32_t layers_scaled_by_width = 0;
  std::uint32_t unrotated_period = 0;  // N: every N-th layer has no rope; 0: all layers have a rope
  HeadNorms head_norms = HeadNorms::each;
  HeadNormPlace head_norm_place = HeadNormPlace::before_rope;
  Experts experts = {};
  bool has_temperature = false;                // queries may be multiplied by a factor that grows with their position
  double temperature = 0;                      // rate of that growth if the file states none; 0: no growth
  Softcaps softcaps = {};
  Sinks sinks = Sinks::none;
  YarnRamp yarn_ramp = YarnRamp::whole_pairs;
  RecurrentMixers recurrent = {};
  OutputGate output_gate = OutputGate::none;
  bool rotates_if_said = false;                // rope is used only if the file sets rope.scaling.finetuned
  bool is_latent = false;                      // latent attention: a token's keys and values are one latent vector
  double score_scale = 0;                      // factor of scores if the file states none; 0: 1 / sqrt(key_dim)
  ValueNorm value_norm = ValueNorm::none;
  bool shares_keys = false;                    // layers of some files read an earlier layer's keys and values
  bool has_per_layer_inputs = false;           // some files have an embedding table for each layer
  // true: an encoder, which computes embeddings and no logits. Rows see later rows too; half of a window lies before a row, half after it.
  bool encodes = false;
  Pooling pooling = Pooling::mean;             // default, for files that do not say
  ActivationKind head_activation = ActivationKind::tanh;
  bool guesses_further = false;                // some files have MTP heads after the last layer: with_mtp_heads()
};

// The tensors of a model like Llama: RMSNorm, separate matrices for Q, K and V, a gated FFN, no biases.
inline constexpr TensorTable kLlamaTensors =
    TensorTable{}
        .required(Role::token_embd, Role::output_norm, Role::attn_norm, Role::attn_q, Role::attn_k, Role::attn_v,
                  Role::attn_output, Role::ffn_norm, Role::ffn_gate, Role::ffn_up, Role::ffn_down)
        .optional(Role::output, Role::rope_freqs);  // if there is no `output`, token_embd serves as the output matrix too

// Returns the table with the tensors of experts and of a shared expert added. A layer needs the shared expert's tensors only if the
// settings give the layer's shared expert a size. The experts' gate and up matrices may be fused, because some converters fuse them.
inline constexpr TensorTable with_experts(TensorTable table) noexcept {
  return table
      .required(Role::router, Role::experts_gate, Role::experts_up, Role::experts_down, Role::shared_gate, Role::shared_up,
                Role::shared_down)
      .optional(Role::experts_gate_up, Role::shared_weight);
}

// Returns the table with the tensors of MTP heads added. An MTP head is a layer, so the table has most of its tensors already; those
// added here are the ones that no other layer has. A head without its own embedding, output matrix or final norm uses the model's.
inline constexpr TensorTable with_mtp_heads(TensorTable table) noexcept {
  return table.required(Role::mtp_token_norm, Role::mtp_hidden_norm, Role::mtp_in)
      .optional(Role::mtp_token_embd, Role::mtp_output_norm, Role::mtp_output);
}

// The tensors of a model like Llama whose norms come after attention and FFN instead of before them.
inline constexpr TensorTable kPostNormTensors =
    kLlamaTensors.without(Role::attn_norm, Role::ffn_norm).required(Role::attn_post_norm, Role::ffn_post_norm);

inline constexpr TensorTable with_attention_biases(TensorTable table) noexcept {
  return table.optional(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias, Role::attn_output_bias);
}

}  // namespace tessera
