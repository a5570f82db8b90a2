// Mixtures of experts with ordinary attention.
#include <algorithm>

#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::int64_t kSigmoidScores = 2;  // Setting::expert_routing

void map_mixtral(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_windows(m);
  map_experts(m);
  expect_silu(m);
}

// Maps the experts of Qwen's models. All their layers have experts.
void map_qwen_moe(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_experts(m);
  expect_silu(m);
  m.copy_integer(Setting::shared_expert_dim, "shared_expert_intermediate_size");
  m.copy_boolean(Setting::renormalise_experts, "norm_topk_prob");
  m.expect_integer("decoder_sparse_step", 1);
  const Json* dense = m.config.find("mlp_only_layers");
  if (dense != nullptr && dense->elements() != nullptr && !dense->elements()->empty()) {
    m.refuse(ErrorCode::unsupported, "mlp_only_layers", "some layers have no experts");
  }
}

void map_qwen2_moe(Mapping& m) {
  map_qwen_moe(m);
  // Every second layer of the first max_window_layers layers has the window.
  map_windows_if(m, [](Mapping& model, std::int64_t layer) { return layer % 2 == 0 && layer < model.integer("max_window_layers").value_or(28); });
}

void map_qwen3_moe(Mapping& m) {
  map_qwen_moe(m);
  map_windows_if(m, [](Mapping&, std::int64_t) { return true; });
}

void map_granitemoe(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_granite_scales(m);
  map_experts(m);
  expect_silu(m);
}

void map_granitemoeshared(Mapping& m) {
  map_granitemoe(m);
  m.copy_integer(Setting::shared_expert_dim, "shared_intermediate_size");
}

// Sets intermediate_size, for types in which this key is the width of an expert.
void fill_expert_width(Mapping& m) {
  if (m.filling != nullptr) m.filling->fill_integer("intermediate_size", Setting::expert_dim);
}

void map_gpt_oss(Mapping& m) {
  fill_expert_width(m);
  map_common(m);
  map_rope(m);
  map_mixed_windows(m);
  map_experts(m);
  m.copy_integer(Setting::expert_dim, "intermediate_size");
  const Json* truncated = find_in(rope_object(m, "full_attention"), "truncate");
  const bool is_exact = truncated != nullptr && truncated->boolean() != nullptr && !*truncated->boolean();
  if (m.settings.string_or(Setting::rope_scaling, "").value_or("") == "yarn" && !is_exact) {
    m.refuse(ErrorCode::unsupported, "rope_scaling.truncate", "the value is true; tessera computes models of this type only with false");
  }
  const auto alpha = m.number("swiglu_alpha"), limit = m.number("swiglu_limit");
  if (alpha && *alpha != 1.702) m.refuse(ErrorCode::unsupported, "swiglu_alpha", "the value is {}; 1.702 is implemented", *alpha);
  if (limit && *limit != 7.0) m.refuse(ErrorCode::unsupported, "swiglu_limit", "the value is {}; 7 is implemented", *limit);
}

void map_glm4moe(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_partial_rope(m);
  map_grouped_experts(m);
  m.set(Setting::expert_routing, kSigmoidScores, "model_type");
  m.copy_integer(Setting::n_further_layers, "num_nextn_predict_layers");
  expect_silu(m);
}

void map_minimax_m2(Mapping& m) {
  fill_expert_width(m);
  map_common(m);
  map_rope(m);
  map_partial_rope(m);
  map_experts(m);
  m.copy_integer(Setting::expert_dim, "intermediate_size");
  m.set(Setting::expert_routing, kSigmoidScores, "model_type");
  expect_silu(m);
  const auto rotated = m.integer("rotary_dim");  // older configurations
  if (rotated && !m.settings.has(Setting::rope_dim)) m.set(Setting::rope_dim, *rotated, "rotary_dim");
}

void map_olmoe(Mapping& m) {
  fill_expert_width(m);
  map_common(m);
  map_rope(m);
  map_experts(m);
  m.copy_integer(Setting::expert_dim, "intermediate_size");
  m.copy_boolean(Setting::renormalise_experts, "norm_topk_prob");
  expect_silu(m);
  if (m.number("clip_qkv")) m.refuse(ErrorCode::unsupported, "clip_qkv", "tessera does not clip queries, keys and values");
}

void map_dots1(Mapping& m) {
  if (m.filling != nullptr) fill_window_types(*m.filling, WhenAlike::always);
  map_common(m);
  map_rope(m);
  if (m.config.find("layer_types") != nullptr) map_windows(m);
  map_grouped_experts(m);
  m.set(Setting::expert_routing, kSigmoidScores, "model_type");
  expect_silu(m);
}

void map_exaone_moe(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_mixed_windows(m);
  map_grouped_experts(m);
  m.copy_integer(Setting::n_shared_experts, "num_shared_experts");
  m.set(Setting::expert_routing, kSigmoidScores, "model_type");
  expect_silu(m);
}

void map_hunyuan3(Mapping& m) {
  map_common(m);
  map_rope(m);
  m.set(Setting::n_dense_layers, std::int64_t{1}, "mlp_layer_types");
  map_grouped_experts(m);
  m.copy_integer(Setting::n_shared_experts, "num_shared_experts");
  m.copy_number(Setting::expert_scale, "router_scaling_factor");
  m.set(Setting::expert_routing, kSigmoidScores, "model_type");
  expect_silu(m);
}

void map_deepseek(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_grouped_experts(m);
  m.expect_text("scoring_func", {"softmax"});
  expect_silu(m);
}

void map_ernie_moe(Mapping& m) {
  map_common(m);
  map_rope(m);
  m.copy_integer(Setting::n_experts, "moe_num_experts");
  m.copy_integer(Setting::n_used_experts, "moe_k");
  m.copy_integer(Setting::expert_dim, "moe_intermediate_size");
  m.copy_integer(Setting::n_shared_experts, "moe_num_shared_experts");
  m.set(Setting::n_dense_layers, std::int64_t{1}, "moe_layer_start_index");
  m.copy_integer(Setting::n_dense_layers, "moe_layer_start_index");
  m.expect_integer("moe_layer_interval", 1);
  m.set(Setting::interleave_moe_layer_step, std::int64_t{1}, "moe_layer_interval");  // llama.cpp needs it
  const std::int64_t last = m.integer("moe_layer_end_index").value_or(-1);
  if (last != -1 && last < m.given(Setting::n_layers) - 1) m.refuse(ErrorCode::unsupported, "moe_layer_end_index", "a dense layer follows one with experts");
  expect_silu(m);
}

// Returns the value of a key that is a number, or a list in which all layers have the same number.
std::optional<std::int64_t> same_in_all_layers(Mapping& m, std::string_view key) {
  const Json* value = m.config.find(key);
  if (value == nullptr || value->elements() == nullptr) return m.integer(key);
  std::optional<std::int64_t> found;
  for (const Json& element : *value->elements()) {
    const auto number = m.integer_of(&element, key);
    if (found && number != found) m.refuse(ErrorCode::unsupported, key, "layers differ: {} and {}", *found, number.value_or(0));
    found = number;
  }
  return found;
}

void fill_hunyuan_moe(Filling& f) {
  f.fill_integer("moe_topk", Setting::n_used_experts);
  f.fill_integer("moe_intermediate_size", Setting::expert_dim);
  const auto shared = f.integer(Setting::shared_expert_dim), width = f.integer(Setting::ffn_dim);
  if (shared && width && *width > 0) f.set("num_shared_expert", *shared / *width);
}

void map_hunyuan_moe(Mapping& m) {
  if (m.filling != nullptr) fill_hunyuan_moe(*m.filling);
  map_hunyuan(m);
  m.copy_integer(Setting::n_experts, "num_experts");
  const auto used = same_in_all_layers(m, "moe_topk"), dim = same_in_all_layers(m, "moe_intermediate_size"), shared = same_in_all_layers(m, "num_shared_expert");
  if (used) m.set(Setting::n_used_experts, *used, "moe_topk");
  m.set(Setting::expert_dim, dim.value_or(m.given(Setting::ffn_dim)), "moe_intermediate_size");
  m.set(Setting::shared_expert_dim, m.given(Setting::ffn_dim) * std::clamp<std::int64_t>(shared.value_or(1), 0, 64), "num_shared_expert");
}

constexpr TensorRow kMixtralExperts[] = {
    {Role::router, "block_sparse_moe.gate.weight"},
    {Role::choice_bias, "block_sparse_moe.e_score_correction_bias"},
    {Role::experts_gate, "block_sparse_moe.experts.*.w1.weight"},
    {Role::experts_up, "block_sparse_moe.experts.*.w3.weight"},
    {Role::experts_down, "block_sparse_moe.experts.*.w2.weight"},
};
constexpr TensorRow kGraniteExperts[] = {
    {Role::router, "block_sparse_moe.router.layer.weight"},
    {Role::experts_gate, "block_sparse_moe.input_linear.weight", first_half},
    {Role::experts_up, "block_sparse_moe.input_linear.weight", second_half},
    {Role::experts_down, "block_sparse_moe.output_linear.weight"},
};
constexpr TensorRow kGraniteShared[] = {
    {Role::shared_gate, "shared_mlp.input_linear.weight", first_half},
    {Role::shared_up, "shared_mlp.input_linear.weight", second_half},
    {Role::shared_down, "shared_mlp.output_linear.weight"},
};
constexpr TensorRow kHunyuan3Rows[] = {
    {Role::router, "mlp.router.gate.weight"}, {Role::choice_bias, "mlp.expert_bias"},
    {Role::shared_gate, "mlp.shared_mlp.gate_proj.weight"}, {Role::shared_up, "mlp.shared_mlp.up_proj.weight"},
    {Role::shared_down, "mlp.shared_mlp.down_proj.weight"},
};
constexpr TensorRow kGptOssRows[] = {
    {Role::attn_sinks, "self_attn.sinks"},
    {Role::router, "mlp.router.weight"}, {Role::router_bias, "mlp.router.bias"},
    {Role::experts_gate, "mlp.experts.gate_up_proj", transposed_gates},
    {Role::experts_up, "mlp.experts.gate_up_proj", transposed_ups},
    {Role::experts_down, "mlp.experts.down_proj", transposed_experts},
    {Role::experts_gate_bias, "mlp.experts.gate_up_proj_bias", even_values},
    {Role::experts_up_bias, "mlp.experts.gate_up_proj_bias", odd_values},
    {Role::experts_down_bias, "mlp.experts.down_proj_bias"},
};

constexpr TensorRow kExaoneBias[] = {
    {Role::choice_bias, "mlp.e_score_correction_bias"},
};
constexpr TensorRow kErnieRows[] = {
    {Role::choice_bias, "mlp.moe_statics.e_score_correction_bias", flat},
};
constexpr TensorRow kHunyuanRows[] = {
    {Role::attn_q_norm, "self_attn.query_layernorm.weight"}, {Role::attn_k_norm, "self_attn.key_layernorm.weight"},
    {Role::router, "mlp.gate.wg.weight"},
    {Role::shared_gate, "mlp.shared_mlp.gate_proj.weight"}, {Role::shared_up, "mlp.shared_mlp.up_proj.weight"},
    {Role::shared_down, "mlp.shared_mlp.down_proj.weight"},
};
constexpr TensorRow kQwen3VlExperts[] = {
    {Role::router, "mlp.gate.weight"},
    {Role::experts_gate, "mlp.experts.gate_up_proj", gates_of_experts},
    {Role::experts_up, "mlp.experts.gate_up_proj", ups_of_experts},
    {Role::experts_down, "mlp.experts.down_proj", downs_of_experts},
};

constexpr Table kExpertsTables[] = {
    {"mixtral", "llama", map_mixtral, {kModelRows, kNormRows, kPairedAttentionRows, kExpertRows, kMixtralExperts}},
    {"qwen2_moe", "qwen2moe", map_qwen2_moe, {kModelRows, kNormRows, kAttentionRows, kExpertRows, kQwenSharedRows}},
    {"qwen3_moe", "qwen3moe", map_qwen3_moe, {kModelRows, kNormRows, kAttentionRows, kExpertRows}},
    {"granitemoe", "granitemoe", map_granitemoe, {kModelRows, kNormRows, kPairedAttentionRows, kGraniteExperts}},
    {"granitemoeshared", "granitemoe", map_granitemoeshared, {kModelRows, kNormRows, kPairedAttentionRows, kGraniteExperts, kGraniteShared}},
    {"hy_v3", "hy_v3", map_hunyuan3, {kModelRows, kNormRows, kAttentionRows, kFeedRows, kExpertRows, kHunyuan3Rows}},
    {"qwen3_vl_moe_text", "qwen3vlmoe", map_qwen3_moe, {kModelRows, kNormRows, kAttentionRows, kQwen3VlExperts}},
    {"olmoe", "olmoe", map_olmoe, {kModelRows, kNormRows, kAttentionRows, kExpertRows}},
    {"deepseek", "deepseek", map_deepseek, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows, kExpertRows}},
    {"dots1", "dots1", map_dots1, {kModelRows, kNormRows, kAttentionRows, kFeedRows, kExpertRows}},
    {"ernie4_5_moe", "ernie4_5-moe", map_ernie_moe, {kModelRows, kNormRows, kAttentionRows, kFeedRows, kExpertRows, kErnieRows}},
    {"exaone_moe", "exaone-moe", map_exaone_moe, {kModelRows, kNormRows, kAttentionRows, kFeedRows, kExpertRows, kExaoneBias}},
    {"hunyuan_v1_moe", "hunyuan-moe", map_hunyuan_moe, {kModelRows, kNormRows, kAttentionRows, kExpertRows, kHunyuanRows}},
    {"gpt_oss", "gpt-oss", map_gpt_oss, {kModelRows, kLateNormRows, kAttentionRows, kGptOssRows}},
    {"glm4_moe", "glm4moe", map_glm4moe, {kModelRows, kLateNormRows, kAttentionRows, kFeedRows, kExpertRows, kFurtherRows}},
    {"minimax_m2", "minimax-m2", map_minimax_m2, {kModelRows, kNormRows, kAttentionRows, kExpertRows, kMixtralExperts}},
};

}  // namespace

std::span<const Table> expert_tables() noexcept { return kExpertsTables; }

}  // namespace tessera::detail::hub
