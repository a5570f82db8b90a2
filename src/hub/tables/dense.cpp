// Dense models: Llama and similar models.
#include <algorithm>
#include <cmath>

#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

#include "core/math.hpp"

namespace tessera::detail::hub {

namespace {

void map_llama(Mapping& m) {
  map_common(m);
  map_rope(m);
  expect_silu(m);
}

void map_windowed_llama(Mapping& m) {
  map_llama(m);
  map_windows(m);
}

// Returns whether a layer of Qwen 2 or 3 has a window: the first max_window_layers layers see everything.
bool is_behind_first(Mapping& m, std::int64_t layer) { return layer >= m.integer("max_window_layers").value_or(28); }

void map_qwen(Mapping& m) {
  map_llama(m);
  map_windows_if(m, is_behind_first);
}

// Returns whether a layer of SmolLM3 rotates. no_rope_layers has a number for each layer, which is 1 if the layer rotates.
bool rotates(Mapping& m, std::int64_t layer) {
  const Json* list = m.config.find("no_rope_layers");
  if (list != nullptr && list->elements() != nullptr) {
    if (static_cast<std::size_t>(layer) >= list->elements()->size()) return true;  // map_smollm3() refuses such a list
    return m.integer_of(&(*list->elements())[static_cast<std::size_t>(layer)], "no_rope_layers").value_or(1) != 0;
  }
  const std::int64_t period = m.integer("no_rope_layer_interval").value_or(4);
  return period <= 0 || (layer + 1) % period != 0;
}

// Sets no_rope_layers, from the layers' ropes.
void fill_smollm3(Filling& f) {
  Json rotating = Json::array();
  for (const LayerSpec& layer : f.spec.layers) rotating.elements()->emplace_back(layer.rope == kNoRope ? 0 : 1);
  f.set("no_rope_layers", std::move(rotating));
}

void map_smollm3(Mapping& m) {
  if (m.filling != nullptr) fill_smollm3(*m.filling);
  map_llama(m);
  map_windows_if(m, [](Mapping& model, std::int64_t layer) { return !rotates(model, layer); });
  const std::int64_t layers = std::clamp<std::int64_t>(m.given(Setting::n_layers), 0, kMostListed);
  const Json* list = m.config.find("no_rope_layers");
  if (list != nullptr && (list->elements() == nullptr || list->elements()->size() != static_cast<std::size_t>(layers))) {
    return m.refuse(ErrorCode::corrupt_file, "no_rope_layers", "expected an array of {} numbers, one per layer", layers);
  }
  std::vector<std::int32_t> dims;
  bool is_usual = true;  // every fourth layer has no rope
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool has_rope = rotates(m, layer);
    is_usual = is_usual && has_rope == ((layer + 1) % 4 != 0);
    dims.push_back(has_rope ? static_cast<std::int32_t>(std::clamp<std::int64_t>(head_dim(m), 0, 1 << 16)) : 0);
  }
  if (!is_usual) m.set(Setting::rope_dim, std::move(dims), "no_rope_layers");
}

void map_granite(Mapping& m) {
  map_llama(m);
  map_granite_scales(m);
}

void map_mistral3(Mapping& m) {
  if (m.filling != nullptr) fill_temperature(*m.filling);
  map_windowed_llama(m);
  const Json* rope = rope_object(m, "full_attention");
  const auto rate = m.number_of(find_in(rope, "llama_4_scaling_beta"), "rope_parameters.llama_4_scaling_beta");
  if (rate && *rate != 0.0) m.set(Setting::temperature_scale, *rate, "rope_parameters.llama_4_scaling_beta");
}

void map_mixed_llama(Mapping& m) {
  map_llama(m);
  map_mixed_windows(m);
}

void map_phi3(Mapping& m) {
  if (m.filling != nullptr) m.filling->fill_integer("original_max_position_embeddings", Setting::original_context);
  map_llama(m);
  map_partial_rope(m);
  map_windows(m);
  if (!m.settings.has(Setting::original_context)) m.copy_integer(Setting::original_context, "original_max_position_embeddings");
}

void map_glm4(Mapping& m) {
  map_llama(m);
  map_partial_rope(m);
}

void map_glm(Mapping& m) {
  map_glm4(m);
  if (!m.settings.has(Setting::rope_dim)) m.set(Setting::rope_dim, head_dim(m) / 2, "partial_rotary_factor");
}

void map_stablelm(Mapping& m) {
  map_llama(m);
  map_layer_norm(m, "layer_norm_eps");
  map_partial_rope(m);
  m.expect_boolean("use_parallel_residual", false);
}

void map_starcoder2(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_layer_norm(m, "norm_epsilon");
  map_windows(m);
  m.expect_text("hidden_act", {"gelu_pytorch_tanh", "gelu_new"});
}

void map_arcee(Mapping& m) {
  map_common(m);
  map_rope(m);
  m.expect_text("hidden_act", {"relu2"});
}

void map_nemotron(Mapping& m) {
  map_arcee(m);
  map_layer_norm(m, "norm_eps");
  map_partial_rope(m);
  if (!m.settings.has(Setting::rope_dim)) m.set(Setting::rope_dim, head_dim(m) / 2, "partial_rotary_factor");
}

void map_orion(Mapping& m) {
  map_llama(m);
  map_layer_norm(m, "rms_norm_eps");
}

// Sets the keys from which MiniCPM computes two factors: the last hidden state is divided by hidden_size / dim_model_base, and what
// attention and the feed-forward network add to the hidden state is multiplied by scale_depth / sqrt(layers).
void fill_minicpm(Filling& f) {
  const double layers = f.spec.n_layers(), width = f.spec.d_model;
  if (const auto scale = f.number(Setting::residual_scale)) f.set_number("scale_depth", static_cast<double>(static_cast<float>(*scale * std::sqrt(layers))));
  if (const auto scale = f.number(Setting::logit_scale); scale && *scale > 0.0) f.set("dim_model_base", width / *scale);
}

void map_minicpm(Mapping& m) {
  if (m.filling != nullptr) fill_minicpm(*m.filling);
  map_llama(m);
  m.copy_number(Setting::embedding_scale, "scale_emb");
  const double width = static_cast<double>(m.given(Setting::d_model)), layers = static_cast<double>(m.given(Setting::n_layers));
  if (const auto depth = m.number("scale_depth"); depth && layers > 0.0) m.set(Setting::residual_scale, *depth / std::sqrt(layers), "scale_depth");
  if (const auto base = m.number("dim_model_base"); base && *base > 0.0) m.set(Setting::logit_scale, width / *base, "dim_model_base");
}

void map_cohere(Mapping& m) {
  map_llama(m);
  map_layer_norm(m, "layer_norm_eps");
  m.copy_number(Setting::logit_scale, "logit_scale");
  m.expect_boolean("use_qk_norm", false);
}

void map_cohere2(Mapping& m) {
  map_cohere(m);
  map_mixed_windows(m);
  if (!m.settings.has(Setting::window_pattern)) m.copy_integer(Setting::window_pattern, "sliding_window_pattern");
}

constexpr TensorRow kPlusOneLayerNorms[] = {
    {Role::token_embd, "embed_tokens.weight"}, {Role::output, "lm_head.weight"},
    {Role::output_norm, "norm.weight", plus_one}, {Role::output_norm_bias, "norm.bias"},
    {Role::attn_norm, "input_layernorm.weight", plus_one}, {Role::attn_norm_bias, "input_layernorm.bias"},
    {Role::ffn_norm, "post_attention_layernorm.weight", plus_one}, {Role::ffn_norm_bias, "post_attention_layernorm.bias"},
};
constexpr TensorRow kGlm4Norms[] = {
    {Role::attn_norm, "input_layernorm.weight"},
    {Role::attn_post_norm, "post_self_attn_layernorm.weight"},
    {Role::ffn_norm, "post_attention_layernorm.weight"},
    {Role::ffn_post_norm, "post_mlp_layernorm.weight"},
};
constexpr TensorRow kPhi3Attention[] = {
    {Role::attn_qkv, "self_attn.qkv_proj.weight"},
    {Role::attn_output, "self_attn.o_proj.weight"},
};
constexpr TensorRow kHunyuanNorms[] = {
    {Role::attn_q_norm, "self_attn.query_layernorm.weight"},
    {Role::attn_k_norm, "self_attn.key_layernorm.weight"},
};
constexpr TensorRow kStarcoder2Feed[] = {
    {Role::ffn_up, "mlp.c_fc.weight"}, {Role::ffn_up_bias, "mlp.c_fc.bias"},
    {Role::ffn_down, "mlp.c_proj.weight"}, {Role::ffn_down_bias, "mlp.c_proj.bias"},
};

constexpr Table kDenseTables[] = {
    {"llama", "llama", map_llama, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"mistral", "llama", map_windowed_llama, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"ministral", "llama", map_windowed_llama, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"ministral3", "mistral3", map_mistral3, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"cwm", "llama", map_windowed_llama, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"helium", "llama", map_llama, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},  // trained with pairs (2i, 2i + 1)
    {"smollm3", "smollm3", map_smollm3, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"granite", "granite", map_granite, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"ernie4_5", "ernie4_5", map_llama, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"qwen2", "qwen2", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"qwen3", "qwen3", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"seed_oss", "seed_oss", map_llama, {kModelRows, kLateNormRows, kAttentionRows, kFeedRows}},
    {"exaone4", "exaone4", map_mixed_llama, {kModelRows, kPostNormRows, kAttentionRows, kFeedRows}},
    {"olmo2", "olmo2", map_llama, {kModelRows, kPostNormRows, kAttentionRows, kFeedRows}},
    {"olmo3", "olmo2", map_mixed_llama, {kModelRows, kPostNormRows, kAttentionRows, kFeedRows}},
    {"phi3", "phi3", map_phi3, {kModelRows, kNormRows, kPhi3Attention, kFusedFeedRows}},
    {"glm", "chatglm", map_glm, {kModelRows, kNormRows, kAttentionRows, kFusedFeedRows}},
    {"glm4", "glm4", map_glm4, {kModelRows, kGlm4Norms, kAttentionRows, kFusedFeedRows}},
    {"hunyuan_v1_dense", "hunyuan-dense", map_hunyuan, {kModelRows, kNormRows, kAttentionRows, kFeedRows, kHunyuanNorms}},
    {"arcee", "arcee", map_arcee, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"nemotron", "nemotron", map_nemotron, {kPlusOneLayerNorms, kAttentionRows, kFeedRows}},
    {"orion", "orion", map_orion, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"minicpm", "minicpm", map_minicpm, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"qwen2_vl", "qwen2vl", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"qwen2_vl_text", "qwen2vl", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"qwen2_5_vl", "qwen2vl", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"qwen2_5_vl_text", "qwen2vl", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"qwen3_vl_text", "qwen3vl", map_qwen, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"stablelm", "stablelm", map_stablelm, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"starcoder2", "starcoder2", map_starcoder2, {kModelRows, kNormRows, kAttentionRows, kStarcoder2Feed}},
    {"cohere", "command-r", map_cohere, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
    {"cohere2", "cohere2", map_cohere2, {kModelRows, kNormRows, kAttentionRows, kFeedRows}},
};

}  // namespace

void map_hunyuan(Mapping& m) {
  if (m.filling != nullptr) m.filling->fill_number("rope_theta", Setting::rope_theta);
  map_common(m);
  expect_silu(m);
  const Json* rope = rope_object(m, "full_attention");
  const auto own = m.number_of(find_in(rope, "rope_theta"), "rope_theta");
  const double theta = (own ? own : m.number("rope_theta")).value_or(10000.0);
  const auto alpha = m.number_of(find_in(rope, "alpha"), "rope_scaling.alpha");  // NTK-aware: a larger base instead of scaled positions
  const auto dim = static_cast<double>(head_dim(m));
  const double grown = alpha && *alpha > 0.0 && dim > 2.0 ? math::pow(*alpha, dim / (dim - 2.0)) : 1.0;
  m.set(Setting::rope_theta, theta * grown, "rope_theta");
  if (!m.settings.has(Setting::key_dim)) {
    m.copy_integer(Setting::key_dim, "attention_head_dim");
    m.copy_integer(Setting::value_dim, "attention_head_dim");
  }
}

void map_granite_scales(Mapping& m) {
  m.copy_number(Setting::score_scale, "attention_multiplier");
  m.copy_number(Setting::embedding_scale, "embedding_multiplier");
  m.copy_number(Setting::residual_scale, "residual_multiplier");
  m.copy_number(Setting::logit_scale, "logits_scaling");
}

std::span<const Table> dense_tables() noexcept { return kDenseTables; }

}  // namespace tessera::detail::hub
