// Names of tensors and keys of config.json that most types of models have in common.
#pragma once

#include "hub/arrangements.hpp"
#include "hub/table.hpp"

namespace tessera::detail::hub {

inline constexpr TensorRow kModelRows[] = {
    {Role::token_embd, "embed_tokens.weight"},
    {Role::output_norm, "norm.weight"},
    {Role::output_norm_bias, "norm.bias"},
    {Role::output, "lm_head.weight"},
};
inline constexpr TensorRow kNormRows[] = {
    {Role::attn_norm, "input_layernorm.weight"},
    {Role::attn_norm_bias, "input_layernorm.bias"},
    {Role::ffn_norm, "post_attention_layernorm.weight"},
    {Role::ffn_norm_bias, "post_attention_layernorm.bias"},
};
// Norms of models in which the norm before the FFN is called post_attention_norm in GGUF (Role::ffn_norm_late).
inline constexpr TensorRow kLateNormRows[] = {
    {Role::attn_norm, "input_layernorm.weight"},
    {Role::ffn_norm_late, "post_attention_layernorm.weight"},
};
// Norms after attention and after the FFN, without norms before them.
inline constexpr TensorRow kPostNormRows[] = {
    {Role::attn_post_norm, "post_attention_layernorm.weight"},
    {Role::ffn_post_norm, "post_feedforward_layernorm.weight"},
};
inline constexpr TensorRow kAttentionRows[] = {
    {Role::attn_q, "self_attn.q_proj.weight"}, {Role::attn_q_bias, "self_attn.q_proj.bias"},
    {Role::attn_k, "self_attn.k_proj.weight"}, {Role::attn_k_bias, "self_attn.k_proj.bias"},
    {Role::attn_v, "self_attn.v_proj.weight"}, {Role::attn_v_bias, "self_attn.v_proj.bias"},
    {Role::attn_output, "self_attn.o_proj.weight"}, {Role::attn_output_bias, "self_attn.o_proj.bias"},
    {Role::attn_q_norm, "self_attn.q_norm.weight"}, {Role::attn_k_norm, "self_attn.k_norm.weight"},
};
// Attention of Llama and similar models: the rows of Q and K are reordered to pairs (2i, 2i + 1).
inline constexpr TensorRow kPairedAttentionRows[] = {
    {Role::attn_q, "self_attn.q_proj.weight", query_pairs}, {Role::attn_q_bias, "self_attn.q_proj.bias", query_pairs},
    {Role::attn_k, "self_attn.k_proj.weight", key_pairs}, {Role::attn_k_bias, "self_attn.k_proj.bias", key_pairs},
    {Role::attn_v, "self_attn.v_proj.weight"}, {Role::attn_v_bias, "self_attn.v_proj.bias"},
    {Role::attn_output, "self_attn.o_proj.weight"}, {Role::attn_output_bias, "self_attn.o_proj.bias"},
};
inline constexpr TensorRow kFeedRows[] = {
    {Role::ffn_gate, "mlp.gate_proj.weight"}, {Role::ffn_gate_bias, "mlp.gate_proj.bias"},
    {Role::ffn_up, "mlp.up_proj.weight"}, {Role::ffn_up_bias, "mlp.up_proj.bias"},
    {Role::ffn_down, "mlp.down_proj.weight"}, {Role::ffn_down_bias, "mlp.down_proj.bias"},
};
inline constexpr TensorRow kFusedFeedRows[] = {
    {Role::ffn_gate_up, "mlp.gate_up_proj.weight"},
    {Role::ffn_down, "mlp.down_proj.weight"},
};
// Experts: a tensor for each expert, or one tensor for all experts (as in transformers' memory).
inline constexpr TensorRow kExpertRows[] = {
    {Role::router, "mlp.gate.weight"},
    {Role::choice_bias, "mlp.gate.e_score_correction_bias"},
    {Role::experts_gate, "mlp.experts.*.gate_proj.weight"},
    {Role::experts_up, "mlp.experts.*.up_proj.weight"},
    {Role::experts_down, "mlp.experts.*.down_proj.weight"},
    {Role::experts_gate, "mlp.experts.gate_up_proj", first_half},
    {Role::experts_up, "mlp.experts.gate_up_proj", second_half},
    {Role::experts_down, "mlp.experts.down_proj"},
    {Role::shared_gate, "mlp.shared_experts.gate_proj.weight"},
    {Role::shared_up, "mlp.shared_experts.up_proj.weight"},
    {Role::shared_down, "mlp.shared_experts.down_proj.weight"},
};
// The shared expert of Qwen's models, which computes every row, and whose output has a weight for each row.
inline constexpr TensorRow kQwenSharedRows[] = {
    {Role::shared_gate, "mlp.shared_expert.gate_proj.weight"},
    {Role::shared_up, "mlp.shared_expert.up_proj.weight"},
    {Role::shared_down, "mlp.shared_expert.down_proj.weight"},
    {Role::shared_weight, "mlp.shared_expert_gate.weight", flat},
};
// The model's tensors (not the layers'), if norms multiply by 1 + weight (Gemma 1 to 3, Qwen3.5).
inline constexpr TensorRow kPlusOneModelRows[] = {
    {Role::token_embd, "embed_tokens.weight"},
    {Role::output_norm, "norm.weight", plus_one},
    {Role::output, "lm_head.weight"},
};
// Draft heads: layers after the model's last layer.
inline constexpr TensorRow kFurtherRows[] = {
    {Role::mtp_token_norm, "enorm.weight"},
    {Role::mtp_hidden_norm, "hnorm.weight"},
    {Role::mtp_in, "eh_proj.weight"},
    {Role::mtp_token_embd, "embed_tokens.weight"},
    {Role::mtp_output_norm, "shared_head.norm.weight"},
    {Role::mtp_output, "shared_head.head.weight"},
};

// The draft head of Qwen3-Next and Qwen3.5, whose norms multiply by 1 + weight too.
inline constexpr TensorRow kQwenHeadRows[] = {
    {Role::mtp_token_norm, "pre_fc_norm_embedding.weight", plus_one},
    {Role::mtp_hidden_norm, "pre_fc_norm_hidden.weight", plus_one},
    {Role::mtp_in, "fc.weight"},
    {Role::mtp_output_norm, "norm.weight", plus_one},
};

// Maps the keys that nearly all types have: widths, numbers of layers and heads, the context, the norm's epsilon.
void map_common(Mapping& m);
// Maps the settings of rope. They are in rope_parameters (transformers 5), or in rope_theta and rope_scaling (earlier versions). `kind`:
// if config.json has a rope for each kind of layer, the kind whose rope is read.
void map_rope(Mapping& m, std::string_view kind = "full_attention");
// Returns the object that describes the rope of a kind of layer; nullptr if config.json has none.
[[nodiscard]] const Json* rope_object(const Mapping& m, std::string_view kind);
// Returns the numbers by which Llama 3.1 divides the frequencies of rope: one number for each pair of dimensions. For pairs that turn
// often within the context of the first training (`original` tokens) the number is 1; for pairs that turn rarely it is `factor`; for
// pairs in between it is between the two. `low`, `high`: low_freq_factor and high_freq_factor, which say what is rarely and often.
[[nodiscard]] std::vector<float> llama3_divisors(double theta, std::int64_t dim, double factor, double low, double high, double original);
// Maps the number of a head's dimensions that rotate: partial_rotary_factor times the head's dimensions. Precondition: map_common().
void map_partial_rope(Mapping& m);
// Map sliding_window, and which layers have this window: those for which layer_types says so; if there is no layer_types, all layers.
// map_mixed_windows() is for types whose architecture mixes layers with and without a window (Architecture::windows).
void map_windows(Mapping& m);
void map_mixed_windows(Mapping& m);
// Maps sliding_window for types that have windows only if use_sliding_window is true. usual(m, layer) says whether a layer has a window;
// it is asked only if config.json has no layer_types. Precondition: map_common().
void map_windows_if(Mapping& m, bool (*usual)(Mapping&, std::int64_t layer));
// Returns the group of a layer, where groups of neighbouring layers share weights (ALBERT).
[[nodiscard]] constexpr std::uint32_t group_of(std::uint32_t layer, std::uint32_t groups, std::uint32_t layers) noexcept {
  return static_cast<std::uint32_t>(std::uint64_t{layer} * groups / layers);
}
// Sets Setting::weights_of by num_hidden_groups. Returns the number of groups; 0 if each layer has its own weights.
[[nodiscard]] std::uint32_t map_groups(Mapping& m);

inline constexpr std::int64_t kMostListed = 4096;  // limit for the layers in lists that tables make, more than any model has
// Maps the epsilon of LayerNorm from `key`, and removes the setting of the RMSNorm's epsilon.
void map_layer_norm(Mapping& m, std::string_view key);
// Maps the number of experts, and the number of experts that compute each row.
void map_experts(Mapping& m);
// Maps the experts' sizes, scale and groups in models with shared_experts (DeepSeek and similar models).
void map_grouped_experts(Mapping& m);
[[nodiscard]] std::int64_t head_dim(const Mapping& m) noexcept;
void expect_silu(Mapping& m);

}  // namespace tessera::detail::hub
