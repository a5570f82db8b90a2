// Models with recurrent layers: gated delta nets (Qwen3-Next, Qwen3.5), short convolutions (LFM2), Mamba-2 (Granite 4, Nemotron-H).
#include <algorithm>

#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

namespace {

bool attends(std::string_view kind) noexcept { return kind == "full_attention" || kind == "attention" || kind == "*"; }

// Returns a text for each layer: `recurrent` if it has a recurrent mixer, otherwise `attending`.
Json kinds_of(const Filling& f, std::string_view recurrent, std::string_view attending = "full_attention") {
  return texts_of_layers(f.spec.n_layers(), [&](std::size_t layer) { return f.spec.layers[layer].is_recurrent() ? recurrent : attending; });
}

// Returns the columns of one head's state.
std::int64_t state_values_of(const Filling& f) {
  for (const LayerSpec& layer : f.spec.layers) {
    if (layer.is_recurrent()) return layer.state_values;
  }
  return 0;
}

void fill_delta_net(Filling& f) {
  f.set("linear_value_head_dim", state_values_of(f));
  f.set("layer_types", kinds_of(f, "linear_attention"));
  f.fill_integer("num_experts", Setting::n_experts);
}

void map_delta_net(Mapping& m) {
  if (m.filling != nullptr) fill_delta_net(*m.filling);
  map_common(m);
  map_rope(m);
  map_partial_rope(m);
  expect_silu(m);
  m.copy_integer(Setting::conv_width, "linear_conv_kernel_dim");
  m.copy_integer(Setting::state_keys, "linear_key_head_dim");
  m.copy_integer(Setting::state_groups, "linear_num_key_heads");
  m.copy_integer(Setting::state_heads, "linear_num_value_heads");
  const std::int64_t heads = m.given(Setting::state_heads), values = m.integer("linear_value_head_dim").value_or(0);
  if (heads > 0 && heads <= 65536 && values > 0 && values <= 65536) m.set(Setting::state_columns, heads * values, "linear_value_head_dim");
  std::vector<std::uint8_t> recurrent;
  for (const std::string_view kind : m.texts("layer_types")) recurrent.push_back(attends(kind) ? 0 : 1);
  if (!recurrent.empty()) m.set(Setting::recurrent_layers, std::move(recurrent), "layer_types");
  m.copy_integer(Setting::full_attention_interval, "full_attention_interval");
  if (m.config.find("num_experts") == nullptr) return;
  map_experts(m);
  m.copy_integer(Setting::shared_expert_dim, "shared_expert_intermediate_size");
  m.copy_boolean(Setting::renormalise_experts, "norm_topk_prob");
  m.expect_integer("decoder_sparse_step", 1);
}

// Maps a list of kinds of layers to the number of KV heads of each: 0 in layers without attention.
void map_kv_heads(Mapping& m, const std::vector<std::string_view>& kinds, std::string_view key) {
  std::vector<std::int32_t> heads;
  const auto count = static_cast<std::int32_t>(std::clamp<std::int64_t>(m.given(Setting::n_kv_heads), 0, 65536));
  for (const std::string_view kind : kinds) heads.push_back(attends(kind) ? count : 0);
  m.set(Setting::n_kv_heads, std::move(heads), key);
}

void map_lfm2(Mapping& m) {
  if (m.filling != nullptr) {
    m.filling->set("layer_types", kinds_of(*m.filling, "conv"));
    m.filling->set("block_auto_adjust_ff_dim", false);
  }
  map_common(m);
  map_rope(m);
  if (!m.settings.has(Setting::ffn_dim)) m.copy_integer(Setting::ffn_dim, "block_ff_dim");
  m.copy_number(Setting::rms_norm_eps, "norm_eps");
  m.copy_number(Setting::rms_norm_eps, "block_norm_eps");
  m.copy_integer(Setting::short_conv_width, "conv_L_cache");
  m.expect_boolean("conv_bias", false);
  auto kinds = m.texts("layer_types");
  const Json* attending = m.config.find("full_attn_idxs");
  if (kinds.empty() && attending != nullptr && attending->elements() != nullptr) {
    kinds.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(m.given(Setting::n_layers), 0, 4096)), "conv");
    for (const Json& index : *attending->elements()) {
      const std::int64_t at = m.integer_of(&index, "full_attn_idxs").value_or(-1);
      if (at >= 0 && at < static_cast<std::int64_t>(kinds.size())) kinds[static_cast<std::size_t>(at)] = "full_attention";
    }
  }
  map_kv_heads(m, kinds, "layer_types");
  if (!m.boolean("block_auto_adjust_ff_dim").value_or(false)) return;
  // transformers' class computes the inner width as Llama 1 does: two thirds of the number, times a factor, rounded up.
  std::int64_t width = std::clamp<std::int64_t>(m.given(Setting::ffn_dim), 0, std::int64_t{1} << 31) * 2 / 3;
  width = static_cast<std::int64_t>(m.number("block_ffn_dim_multiplier").value_or(1.0) * static_cast<double>(width));
  const std::int64_t multiple = std::clamp<std::int64_t>(m.integer("block_multiple_of").value_or(1), 1, 1 << 20);
  m.set(Setting::ffn_dim, (width + multiple - 1) / multiple * multiple, "block_ff_dim");
}

void map_lfm2_moe(Mapping& m) {
  map_lfm2(m);
  map_experts(m);
  m.copy_integer(Setting::n_dense_layers, "num_dense_layers");
  m.copy_number(Setting::expert_scale, "routed_scaling_factor");
  m.copy_boolean(Setting::renormalise_experts, "norm_topk_prob");
  m.set(Setting::expert_routing, std::int64_t{2}, "model_type");
}

void map_mamba2(Mapping& m, std::string_view heads, std::string_view dim, std::string_view groups, std::string_view state, std::string_view width) {
  if (m.filling != nullptr) m.filling->set(dim, state_values_of(*m.filling));
  m.copy_integer(Setting::state_heads, heads);
  m.copy_integer(Setting::state_groups, groups);
  m.copy_integer(Setting::state_keys, state);
  m.copy_integer(Setting::conv_width, width);
  const std::int64_t count = m.given(Setting::state_heads), values = m.integer(dim).value_or(0);
  if (count > 0 && count <= 65536 && values > 0 && values <= 65536) m.set(Setting::state_columns, count * values, dim);
  m.expect_boolean("mamba_proj_bias", false);
}

void fill_granitehybrid(Filling& f) {
  const std::int64_t inner = f.integer(Setting::state_columns).value_or(0);
  f.set("layer_types", kinds_of(f, "mamba", "attention"));
  if (f.spec.d_model > 0) f.set("mamba_expand", inner / f.spec.d_model);
  const std::int64_t experts = f.integer(Setting::n_experts).value_or(0);
  f.set("num_local_experts", experts);
  f.fill_integer("shared_intermediate_size", experts != 0 ? Setting::shared_expert_dim : Setting::ffn_dim);
  const bool rotates = std::ranges::any_of(f.spec.layers, [](const LayerSpec& layer) { return layer.rope != kNoRope; });
  f.set("position_embedding_type", rotates ? "rope" : "nope");
}

void map_granitehybrid(Mapping& m) {
  if (m.filling != nullptr) fill_granitehybrid(*m.filling);
  map_common(m);
  map_granite_scales(m);
  expect_silu(m);
  map_kv_heads(m, m.texts("layer_types"), "layer_types");
  map_mamba2(m, "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv");
  m.copy_integer(Setting::shared_expert_dim, "shared_intermediate_size");
  if (m.integer("num_local_experts").value_or(0) != 0) map_experts(m);
  else m.copy_integer(Setting::ffn_dim, "shared_intermediate_size");
  const bool rotates = m.text("position_embedding_type").value_or("") == "rope";
  m.set(Setting::rope_is_finetuned, rotates, "position_embedding_type");
  if (rotates) map_rope(m);
}

// Returns the kinds of Nemotron-H's layers, one letter for each: M Mamba-2, * attention, - FFN, E experts.
std::vector<std::string_view> nemotron_kinds(Mapping& m) {
  std::vector<std::string_view> kinds;
  if (const auto pattern = m.text("hybrid_override_pattern")) {
    if (pattern->size() > 4096) m.refuse(ErrorCode::corrupt_file, "hybrid_override_pattern", "it has {} layers", pattern->size());
    else for (std::size_t i = 0; i < pattern->size(); ++i) kinds.push_back(pattern->substr(i, 1));
    return kinds;
  }
  for (const std::string_view kind : m.texts("layers_block_type")) {
    kinds.push_back(attends(kind) ? "*" : kind == "mlp" ? "-" : kind == "moe" ? "E" : "M");
  }
  return kinds;
}

void fill_nemotron_h(Filling& f) {
  std::int64_t width = 0;
  bool has_experts = false;
  f.set("layers_block_type", texts_of_layers(f.spec.n_layers(), [&](std::size_t i) {
    const LayerSpec& layer = f.spec.layers[i];
    if (layer.mixer != Mixer::none) return layer.is_recurrent() ? "mamba" : "attention";
    width = layer.ffn_dim;
    has_experts = has_experts || layer.has_experts();
    return layer.has_experts() ? "moe" : "mlp";
  }));
  f.set(has_experts ? "moe_intermediate_size" : "intermediate_size", width);
  const LayerSpec* attending = nullptr;
  for (const LayerSpec& layer : f.spec.layers) {
    if (layer.mixer == Mixer::attention) attending = &layer;
  }
  if (attending != nullptr) f.set("head_dim", std::int64_t{attending->key_dim});
}

void map_nemotron_h(Mapping& m) {
  if (m.filling != nullptr) fill_nemotron_h(*m.filling);
  map_common(m);
  if (!m.settings.has(Setting::key_dim)) {
    m.copy_integer(Setting::key_dim, "attention_head_dim");
    m.copy_integer(Setting::value_dim, "attention_head_dim");
  }
  m.copy_number(Setting::rms_norm_eps, "layer_norm_epsilon");
  const auto kinds = nemotron_kinds(m);
  m.set(Setting::n_layers, static_cast<std::int64_t>(kinds.size()), "layers_block_type");
  map_kv_heads(m, kinds, "layers_block_type");
  map_mamba2(m, "mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel");
  m.expect_text("mlp_hidden_act", {"relu2"});
  const bool has_experts = std::ranges::find(kinds, std::string_view("E")) != kinds.end();
  const std::int64_t feed = m.integer(has_experts ? "moe_intermediate_size" : "intermediate_size").value_or(0);
  std::vector<std::int32_t> widths;
  for (const std::string_view kind : kinds) {
    widths.push_back(kind == (has_experts ? "E" : "-") ? static_cast<std::int32_t>(std::clamp<std::int64_t>(feed, 0, 1 << 30)) : 0);
    if (has_experts && kind == "-") m.refuse(ErrorCode::unsupported, "layers_block_type", "layers with an FFN beside layers with experts");
  }
  m.set(Setting::ffn_dim, std::move(widths), "intermediate_size");
  if (!has_experts) return;
  m.set(Setting::architecture, "nemotron_h_moe", "model_type");
  map_experts(m);
  m.copy_integer(Setting::shared_expert_dim, "moe_shared_expert_intermediate_size");
  m.copy_integer(Setting::n_shared_experts, "n_shared_experts");
  m.copy_boolean(Setting::renormalise_experts, "norm_topk_prob");
  m.copy_number(Setting::expert_scale, "routed_scaling_factor");
  m.copy_integer(Setting::n_expert_groups, "n_group");
  m.copy_integer(Setting::n_used_expert_groups, "topk_group");
  m.copy_integer(Setting::expert_width, "moe_latent_size");
}

constexpr TensorRow kDeltaNetRows[] = {
    {Role::attn_norm, "input_layernorm.weight", plus_one},
    {Role::ffn_norm_late, "post_attention_layernorm.weight", plus_one},
    {Role::attn_q_gated, "self_attn.q_proj.weight"}, {Role::attn_k, "self_attn.k_proj.weight"},
    {Role::attn_v, "self_attn.v_proj.weight"}, {Role::attn_output, "self_attn.o_proj.weight"},
    {Role::attn_q_norm, "self_attn.q_norm.weight", plus_one}, {Role::attn_k_norm, "self_attn.k_norm.weight", plus_one},
    {Role::delta_norm, "linear_attn.norm.weight"},
};
constexpr TensorRow kQwen35Mixer[] = {
    {Role::state_mixed, "linear_attn.in_proj_qkv.weight", dealt_mixed},
    {Role::state_gate, "linear_attn.in_proj_z.weight", dealt_values},
    {Role::state_betas, "linear_attn.in_proj_b.weight", dealt_heads},
    {Role::state_steps, "linear_attn.in_proj_a.weight", dealt_heads},
    {Role::state_conv, "linear_attn.conv1d.weight", dealt_convolution},
    {Role::delta_rate, "linear_attn.A_log", dealt_decay},
    {Role::state_step_bias, "linear_attn.dt_bias", dealt_heads},
    {Role::state_out, "linear_attn.out_proj.weight", dealt_columns},
};
constexpr TensorRow kQwen3NextMixer[] = {
    {Role::state_mixed, "linear_attn.in_proj_qkvz.weight", mixed_of_groups},
    {Role::state_gate, "linear_attn.in_proj_qkvz.weight", gates_of_groups},
    {Role::state_steps_betas, "linear_attn.in_proj_ba.weight"},
    {Role::state_conv, "linear_attn.conv1d.weight", convolution},
    {Role::delta_rate, "linear_attn.A_log", decay},
    {Role::state_step_bias, "linear_attn.dt_bias"},
    {Role::state_out, "linear_attn.out_proj.weight"},
};
constexpr TensorRow kLfm2Rows[] = {
    {Role::token_embd, "embed_tokens.weight"},
    {Role::output_norm_early, "embedding_norm.weight"},
    {Role::output, "lm_head.weight"},
    {Role::attn_norm, "operator_norm.weight"}, {Role::ffn_norm, "ffn_norm.weight"},
    {Role::attn_q, "self_attn.q_proj.weight"}, {Role::attn_k, "self_attn.k_proj.weight"},
    {Role::attn_v, "self_attn.v_proj.weight"}, {Role::attn_output, "self_attn.out_proj.weight"},
    {Role::attn_q_norm, "self_attn.q_layernorm.weight"}, {Role::attn_k_norm, "self_attn.k_layernorm.weight"},
    {Role::short_in, "conv.in_proj.weight"}, {Role::short_conv, "conv.conv.weight", convolution}, {Role::short_out, "conv.out_proj.weight"},
    {Role::ffn_gate, "feed_forward.w1.weight"}, {Role::ffn_up, "feed_forward.w3.weight"}, {Role::ffn_down, "feed_forward.w2.weight"},
};
constexpr TensorRow kLfm2Experts[] = {
    {Role::router, "feed_forward.gate.weight"}, {Role::choice_bias, "feed_forward.expert_bias"},
    {Role::experts_gate, "feed_forward.experts.*.w1.weight"}, {Role::experts_up, "feed_forward.experts.*.w3.weight"},
    {Role::experts_down, "feed_forward.experts.*.w2.weight"},
    {Role::experts_gate, "feed_forward.experts.gate_up_proj", first_half}, {Role::experts_up, "feed_forward.experts.gate_up_proj", second_half},
    {Role::experts_down, "feed_forward.experts.down_proj"},
};
constexpr TensorRow kGraniteHybridRows[] = {
    {Role::state_in, "mamba.in_proj.weight"}, {Role::state_conv, "mamba.conv1d.weight", convolution},
    {Role::state_conv_bias, "mamba.conv1d.bias"}, {Role::scan_rate, "mamba.A_log", decay_column}, {Role::scan_skip, "mamba.D", column},
    {Role::state_step_bias, "mamba.dt_bias"}, {Role::scan_norm, "mamba.norm.weight", norm_of_groups},
    {Role::state_out, "mamba.out_proj.weight"},
    {Role::router, "block_sparse_moe.router.layer.weight"},
    {Role::experts_gate, "block_sparse_moe.input_linear.weight", first_half},
    {Role::experts_up, "block_sparse_moe.input_linear.weight", second_half},
    {Role::experts_down, "block_sparse_moe.output_linear.weight"},
};
// The FFN of models without experts, which has the name of the shared expert.
constexpr TensorRow kGraniteHybridFeed[] = {
    {Role::ffn_gate, "shared_mlp.input_linear.weight", first_half, Of::models_without_experts},
    {Role::ffn_up, "shared_mlp.input_linear.weight", second_half, Of::models_without_experts},
    {Role::ffn_down, "shared_mlp.output_linear.weight", nullptr, Of::models_without_experts},
    {Role::shared_gate, "shared_mlp.input_linear.weight", first_half, Of::models_with_experts},
    {Role::shared_up, "shared_mlp.input_linear.weight", second_half, Of::models_with_experts},
    {Role::shared_down, "shared_mlp.output_linear.weight", nullptr, Of::models_with_experts},
};
constexpr TensorRow kNemotronRows[] = {
    {Role::token_embd, "embeddings.weight"}, {Role::token_embd, "embed_tokens.weight"},
    {Role::output_norm, "norm_f.weight"}, {Role::output, "lm_head.weight"},
    {Role::attn_norm, "norm.weight"},
    {Role::attn_q, "mixer.q_proj.weight"}, {Role::attn_k, "mixer.k_proj.weight"}, {Role::attn_v, "mixer.v_proj.weight"},
    {Role::attn_output, "mixer.o_proj.weight"},
    {Role::attn_q_bias, "mixer.q_proj.bias"}, {Role::attn_k_bias, "mixer.k_proj.bias"}, {Role::attn_v_bias, "mixer.v_proj.bias"},
    {Role::attn_output_bias, "mixer.o_proj.bias"},
    {Role::ffn_up, "mixer.up_proj.weight"}, {Role::ffn_up_bias, "mixer.up_proj.bias"},
    {Role::ffn_down, "mixer.down_proj.weight"}, {Role::ffn_down_bias, "mixer.down_proj.bias"},
    {Role::state_in, "mixer.in_proj.weight"}, {Role::state_conv, "mixer.conv1d.weight", convolution},
    {Role::state_conv_bias, "mixer.conv1d.bias"}, {Role::scan_rate, "mixer.A_log", decay_column}, {Role::scan_skip, "mixer.D", column},
    {Role::state_step_bias, "mixer.dt_bias"}, {Role::scan_norm, "mixer.norm.weight", norm_of_groups},
    {Role::state_out, "mixer.out_proj.weight"},
};
constexpr TensorRow kNemotronExperts[] = {
    {Role::router, "mixer.gate.weight"}, {Role::choice_bias, "mixer.gate.e_score_correction_bias"},
    {Role::experts_in, "mixer.fc1_latent_proj.weight"}, {Role::experts_out, "mixer.fc2_latent_proj.weight"},
    {Role::experts_up, "mixer.experts.*.up_proj.weight"}, {Role::experts_down, "mixer.experts.*.down_proj.weight"},
    {Role::experts_up, "mixer.experts.up_proj"}, {Role::experts_down, "mixer.experts.down_proj"},
    {Role::shared_up, "mixer.shared_experts.up_proj.weight"}, {Role::shared_down, "mixer.shared_experts.down_proj.weight"},
};

constexpr Table kRecurrentTables[] = {
    {"qwen3_5_text", "qwen35", map_delta_net, {kPlusOneModelRows, kDeltaNetRows, kQwen35Mixer, kFeedRows, kQwenHeadRows}, "layers.", true, "mtp."},
    {"qwen3_5_moe_text", "qwen35moe", map_delta_net, {kPlusOneModelRows, kDeltaNetRows, kQwen35Mixer, kExpertRows, kQwenSharedRows, kQwenHeadRows}, "layers.", true, "mtp."},
    {"qwen3_next", "qwen3next", map_delta_net, {kPlusOneModelRows, kDeltaNetRows, kQwen3NextMixer, kExpertRows, kQwenSharedRows, kQwenHeadRows}, "layers.", true, "mtp."},
    {"lfm2", "lfm2", map_lfm2, {kLfm2Rows}},
    {"lfm2_moe", "lfm2moe", map_lfm2_moe, {kLfm2Rows, kLfm2Experts}},
    {"granitemoehybrid", "granitehybrid", map_granitehybrid, {kModelRows, kNormRows, kPairedAttentionRows, kGraniteHybridRows, kGraniteHybridFeed}},
    {"nemotron_h", "nemotron_h", map_nemotron_h, {kNemotronRows, kNemotronExperts}, "layers.", false, {}, "backbone."},
};

}  // namespace

std::span<const Table> recurrent_tables() noexcept { return kRecurrentTables; }

}  // namespace tessera::detail::hub
