// Gemma 1 to 4. The norms of Gemma 1 to 3 multiply by 1 + weight.
#include <algorithm>
#include <cmath>

#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

namespace {

// Sets a setting that config.json may leave out. `value` is the default of transformers' class.
void set_default(Mapping& m, Setting setting, std::int64_t value, std::string_view key) {
  if (!m.settings.has(setting)) m.set(setting, value, key);
}

void map_gemma(Mapping& m) {
  if (m.filling != nullptr) {
    m.filling->set("hidden_activation", "gelu_pytorch_tanh");
    m.filling->set("hidden_act", "gelu_pytorch_tanh");
  }
  map_common(m);
  set_default(m, Setting::n_heads, 8, "num_attention_heads");
  set_default(m, Setting::key_dim, 256, "head_dim");
  set_default(m, Setting::value_dim, 256, "head_dim");
  m.expect_text(m.config.find("hidden_activation") != nullptr ? "hidden_activation" : "hidden_act",
                {"gelu_pytorch_tanh", "gelu_new", "gelu"});  // "gelu" without hidden_activation means the tanh form, as in transformers
}

void map_gemma1(Mapping& m) {
  map_gemma(m);
  map_rope(m);
}

// Maps the factor of attention scores: 1 / sqrt(query_pre_attn_scalar).
void map_score_scale(Mapping& m) {
  if (m.filling != nullptr) {
    const double scalar = inverse_square(static_cast<double>(m.filling->spec.layers.front().scale));
    const bool is_whole = scalar < 1e9 && std::trunc(scalar) == scalar;  // transformers' class wants an integer
    m.filling->set("query_pre_attn_scalar", is_whole ? Json(static_cast<std::int64_t>(scalar)) : Json(scalar));
  }
  const auto scalar = m.number("query_pre_attn_scalar");
  if (scalar && *scalar > 0.0 && *scalar != static_cast<double>(head_dim(m))) {
    m.set(Setting::score_scale, 1.0 / std::sqrt(*scalar), "query_pre_attn_scalar");
  }
}

void map_gemma2(Mapping& m) {
  if (m.filling != nullptr) {
    m.filling->set_number("attn_logit_softcapping", static_cast<double>(m.filling->spec.layers.front().score_softcap));
    m.filling->set_number("final_logit_softcapping", static_cast<double>(m.filling->spec.logit_softcap));
  }
  map_gemma1(m);
  set_default(m, Setting::n_kv_heads, 4, "num_key_value_heads");
  set_default(m, Setting::context, 8192, "max_position_embeddings");
  m.copy_number(Setting::score_softcap, "attn_logit_softcapping");
  m.copy_number(Setting::logit_softcap, "final_logit_softcapping");
  map_mixed_windows(m);
  map_score_scale(m);
}

// Sets the keys that only Gemma 3 has, such as the base of the rope of layers with a window.
void fill_gemma3(Filling& f) {
  for (std::size_t i = 1; i < f.spec.ropes.size(); ++i) f.set_number("rope_local_base_freq", f.spec.ropes[i].theta);
  f.set("attn_logit_softcapping", Json());
  f.set("final_logit_softcapping", Json());
  f.set("use_bidirectional_attention", f.spec.architecture == "gemma-embedding");
}

void map_gemma3(Mapping& m) {
  if (m.filling != nullptr) fill_gemma3(*m.filling);
  map_gemma(m);
  set_default(m, Setting::n_kv_heads, 4, "num_key_value_heads");
  set_default(m, Setting::context, 131072, "max_position_embeddings");
  map_rope(m);
  if (m.config.find("rope_parameters") == nullptr && m.config.find("rope_theta") == nullptr) m.set(Setting::rope_theta, 1e6, "rope_theta");
  const Json* windowed = find_in(m.config.find("rope_parameters"), "sliding_attention");
  auto local = m.number_of(find_in(windowed, "rope_theta"), "rope_parameters.sliding_attention.rope_theta");
  if (!local) local = m.number("rope_local_base_freq");
  m.set(Setting::windowed_rope_theta, local.value_or(10000.0), "rope_local_base_freq");
  map_mixed_windows(m);
  if (!m.settings.has(Setting::window)) m.set(Setting::window, std::int64_t{4096}, "sliding_window");
  if (!m.settings.has(Setting::window_pattern)) m.copy_integer(Setting::window_pattern, "sliding_window_pattern");
  if (!m.settings.has(Setting::window_pattern)) m.copy_integer(Setting::window_pattern, "_sliding_window_pattern");
  map_score_scale(m);
  for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (m.number(key).value_or(0.0) != 0.0) m.refuse(ErrorCode::unsupported, key, "Gemma 3 has no softcaps");
  }
  if (m.boolean("use_bidirectional_attention").value_or(false)) m.set(Setting::architecture, "gemma-embedding", "use_bidirectional_attention");
}

// Sets Gemma 4's keys. Layers with a window and layers without (keys `global_...`) have different sizes.
void fill_gemma4(Filling& f) {
  const ModelSpec& spec = f.spec;
  f.set("rope_scaling", Json());  // rope_parameters has all numbers
  const LayerSpec *windowed = nullptr, *full = nullptr;
  const auto has_window = f.windowed_layers();
  std::int64_t narrow = spec.layers.front().ffn_dim, wide = narrow;
  const auto widths = f.list(Setting::ffn_dim);
  for (std::uint32_t i = 0; i < spec.n_layers(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    (i < has_window.size() && has_window[i] ? windowed : full) = &layer;
    const std::int64_t width = widths.size() > i ? widths[i] : widths.empty() ? layer.ffn_dim : widths.front();
    narrow = std::min(narrow, width);
    wide = std::max(wide, width);
  }
  if (widths.size() > 0) narrow = *std::ranges::min_element(widths), wide = *std::ranges::max_element(widths);
  if (windowed == nullptr) windowed = full;
  if (full == nullptr) full = windowed;
  f.set("head_dim", std::int64_t{windowed->key_dim});
  f.set("global_head_dim", std::int64_t{full->key_dim});
  f.set("num_key_value_heads", std::int64_t{windowed->n_kv_heads});
  f.set("num_global_key_value_heads", std::int64_t{full->n_kv_heads});
  f.set("intermediate_size", narrow);
  f.set("use_double_wide_mlp", wide != narrow);
  f.set("num_kv_shared_layers", f.integer(Setting::shared_kv_layers).value_or(0));
  f.set("hidden_size_per_layer_input", std::int64_t{spec.per_layer_dim});
  f.set("vocab_size_per_layer_input", std::int64_t{spec.vocab_size});
  f.set("final_logit_softcapping", spec.logit_softcap == 0.0f ? Json() : f.number_json(static_cast<double>(spec.logit_softcap)));
  f.set("attention_k_eq_v", !f.has(Role::attn_v, static_cast<std::uint32_t>(full - spec.layers.data())));
  fill_window(f);
  fill_window_types(f, WhenAlike::always);
  const auto divisors = f.values(Role::rope_freqs);
  const auto turning = std::ranges::count(divisors, 1.0f);
  Json all = Json::object(), of_full = Json::object(), of_windowed = Json::object();
  of_full.set("rope_type", "proportional");
  of_full.set("partial_rotary_factor", divisors.empty() ? 1.0 : static_cast<double>(turning) / static_cast<double>(divisors.size()));
  of_full.set("rope_theta", f.number_json(spec.ropes.front().theta));
  of_windowed.set("rope_type", "default");
  of_windowed.set("rope_theta", f.number_json(spec.ropes.back().theta));
  all.set("full_attention", std::move(of_full));
  all.set("sliding_attention", std::move(of_windowed));
  f.set("rope_parameters", std::move(all));
  const bool has_experts = f.integer(Setting::n_experts).value_or(0) > 0;
  f.set("enable_moe_block", has_experts);
  if (!has_experts) return;
  f.fill_integer("num_experts", Setting::n_experts);
  f.fill_integer("top_k_experts", Setting::n_used_experts);
  f.fill_integer("moe_intermediate_size", Setting::expert_dim);
}

// Returns the value of a key for one layer: per_layer_config may have another value than the whole model.
std::int64_t of_layer(Mapping& m, std::size_t layer, std::string_view key, std::int64_t usual) {
  const Json* layers = m.config.find("per_layer_config");
  const auto own = m.integer_of(find_in(find_in(layers, std::to_string(layer)), key), key);
  return own.value_or(usual);
}

void map_gemma4(Mapping& m) {
  if (m.filling != nullptr) fill_gemma4(*m.filling);
  map_gemma(m);
  set_default(m, Setting::context, 131072, "max_position_embeddings");
  const auto kinds = m.texts("layer_types");
  const std::int64_t layers = m.given(Setting::n_layers);
  if (layers <= 0 || layers > 4096 || kinds.size() != static_cast<std::size_t>(layers)) {
    return m.refuse(ErrorCode::corrupt_file, "layer_types", "it has {} entries for {} layers", kinds.size(), layers);
  }
  // Layers that see everything have their own size of head and number of KV heads.
  const std::int64_t windowed_dim = head_dim(m), usual_kv = m.given(Setting::n_kv_heads);
  const std::int64_t full_dim = m.integer("global_head_dim").value_or(windowed_dim);
  const std::int64_t full_kv = m.integer("num_global_key_value_heads").value_or(usual_kv);
  std::int64_t full = full_dim, windowed = windowed_dim;
  std::vector<std::int32_t> kv_heads, widths;
  const std::int64_t shared = m.integer("num_kv_shared_layers").value_or(0);
  const bool wide = m.boolean("use_double_wide_mlp").value_or(false);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool sees_all = kinds[i] == "full_attention";
    (sees_all ? full : windowed) = of_layer(m, i, "head_dim", sees_all ? full_dim : windowed_dim);
    kv_heads.push_back(static_cast<std::int32_t>(of_layer(m, i, "num_key_value_heads", sees_all ? full_kv : usual_kv)));
    const bool doubled = wide && static_cast<std::int64_t>(i) >= layers - shared;
    widths.push_back(static_cast<std::int32_t>(m.given(Setting::ffn_dim) * (doubled ? 2 : 1)));
  }
  m.set(Setting::n_kv_heads, std::move(kv_heads), "num_key_value_heads");
  m.set(Setting::ffn_dim, std::move(widths), "intermediate_size");
  m.set(Setting::key_dim, full, "global_head_dim");
  m.set(Setting::value_dim, full, "global_head_dim");
  m.set(Setting::windowed_key_dim, windowed, "head_dim");
  m.set(Setting::windowed_value_dim, windowed, "head_dim");
  m.set(Setting::rope_dim, full, "global_head_dim");
  m.set(Setting::windowed_rope_dim, windowed, "head_dim");
  m.set(Setting::shared_kv_layers, shared, "num_kv_shared_layers");
  m.copy_integer(Setting::per_layer_dim, "hidden_size_per_layer_input");
  m.copy_number(Setting::logit_softcap, "final_logit_softcapping");
  map_mixed_windows(m);
  map_rope(m);
  const Json* rope = rope_object(m, "full_attention");
  const Json* other = rope_object(m, "sliding_attention");
  const auto theta = m.number_of(find_in(other, "rope_theta"), "rope_parameters.sliding_attention.rope_theta");
  m.set(Setting::windowed_rope_theta, theta.value_or(10000.0), "rope_parameters.sliding_attention.rope_theta");
  // In layers without a window, rope rotates only a share of the pairs of dimensions. rope_divisors has 1 for these pairs; for all other
  // pairs it has a very large number, by which their frequencies are divided, so that they practically do not turn.
  const double share = m.number_of(find_in(rope, "partial_rotary_factor"), "partial_rotary_factor").value_or(1.0);
  if (full > 0 && full <= (1 << 16) && share >= 0.0 && share <= 1.0) {
    const auto turning = static_cast<std::size_t>(static_cast<double>(full) * share / 2.0);
    m.rope_divisors.assign(static_cast<std::size_t>(full) / 2, 1e30f);
    std::fill_n(m.rope_divisors.begin(), std::min(turning, m.rope_divisors.size()), 1.0f);
  }
  if (m.boolean("enable_moe_block").value_or(false)) {
    m.copy_integer(Setting::n_experts, "num_experts");
    m.copy_integer(Setting::n_used_experts, "top_k_experts");
    m.copy_integer(Setting::expert_dim, "moe_intermediate_size");
  }
}

constexpr TensorRow kGemmaNorms[] = {
    {Role::attn_norm, "input_layernorm.weight", plus_one},
    {Role::ffn_norm, "post_attention_layernorm.weight", plus_one},
};
constexpr TensorRow kGemma2Norms[] = {
    {Role::attn_norm, "input_layernorm.weight", plus_one},
    {Role::attn_post_norm, "post_attention_layernorm.weight", plus_one},
    {Role::ffn_norm, "pre_feedforward_layernorm.weight", plus_one},
    {Role::ffn_post_norm, "post_feedforward_layernorm.weight", plus_one},
};
constexpr TensorRow kGemmaAttention[] = {
    {Role::attn_q, "self_attn.q_proj.weight"}, {Role::attn_k, "self_attn.k_proj.weight"},
    {Role::attn_v, "self_attn.v_proj.weight"}, {Role::attn_output, "self_attn.o_proj.weight"},
    {Role::attn_q_norm, "self_attn.q_norm.weight", plus_one}, {Role::attn_k_norm, "self_attn.k_norm.weight", plus_one},
};
constexpr TensorRow kGemma4Rows[] = {
    {Role::attn_norm, "input_layernorm.weight"},
    {Role::attn_post_norm, "post_attention_layernorm.weight"},
    {Role::ffn_norm, "pre_feedforward_layernorm.weight"},
    {Role::ffn_post_norm, "post_feedforward_layernorm.weight"},
    {Role::per_layer_token_embd, "embed_tokens_per_layer.weight"},
    {Role::per_layer_model_proj, "per_layer_model_projection.weight"},
    {Role::per_layer_proj_norm, "per_layer_projection_norm.weight"},
    {Role::per_layer_gate, "per_layer_input_gate.weight"},
    {Role::per_layer_proj, "per_layer_projection.weight"},
    {Role::per_layer_post_norm, "post_per_layer_input_norm.weight"},
    {Role::output_scale, "layer_scalar"},
};
constexpr TensorRow kGemma4Experts[] = {
    {Role::router, "router.proj.weight"},
    {Role::router_norm, "router.scale"},
    {Role::experts_scale, "router.per_expert_scale"},
    {Role::experts_gate_up, "experts.gate_up_proj"},
    {Role::experts_down, "experts.down_proj"},
    {Role::dense_post_norm, "post_feedforward_layernorm_1.weight"},
    {Role::experts_post_norm, "post_feedforward_layernorm_2.weight"},
    {Role::expert_norm, "pre_feedforward_layernorm_2.weight"},
};

// The matrices after EmbeddingGemma's final norm (read_dense_modules()).
constexpr TensorRow kDenseRows[] = {
    {Role::embd_inner, "dense.0.linear.weight"},
    {Role::embd_outer, "dense.1.linear.weight"},
};

constexpr Table kGemmaTables[] = {
    {"gemma", "gemma", map_gemma1, {kPlusOneModelRows, kGemmaNorms, kGemmaAttention, kFeedRows}},
    {"gemma2", "gemma2", map_gemma2, {kPlusOneModelRows, kGemma2Norms, kGemmaAttention, kFeedRows}},
    {"gemma3_text", "gemma3", map_gemma3, {kPlusOneModelRows, kGemma2Norms, kGemmaAttention, kFeedRows, kDenseRows}},
    {"gemma4_text", "gemma4", map_gemma4, {kModelRows, kAttentionRows, kFeedRows, kGemma4Rows, kGemma4Experts}},
};

}  // namespace

std::span<const Table> gemma_tables() noexcept { return kGemmaTables; }

}  // namespace tessera::detail::hub
