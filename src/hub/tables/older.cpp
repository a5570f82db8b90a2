// Older models, from GPT-2 on, in which each type has its own names for all tensors and keys.
#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

namespace {

void map_gpt2(Mapping& m) {
  m.copy_integer(Setting::d_model, "n_embd");
  m.copy_integer(Setting::n_layers, "n_layer");
  m.copy_integer(Setting::n_heads, "n_head");
  m.copy_integer(Setting::context, "n_positions");
  m.copy_integer(Setting::vocab_size, "vocab_size");
  m.set(Setting::ffn_dim, 4 * m.given(Setting::d_model), "n_inner");
  m.copy_integer(Setting::ffn_dim, "n_inner");
  map_layer_norm(m, "layer_norm_epsilon");
  m.expect_text("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  m.expect_boolean("scale_attn_weights", true);
  m.expect_boolean("scale_attn_by_inverse_layer_idx", false);
  m.expect_boolean("add_cross_attention", false);
}

// Sets Falcon's keys. A model has Falcon's new architecture if it has groups of heads or two norms.
void fill_falcon(Filling& f) {
  const std::int64_t heads = f.spec.layers.front().n_heads, kv_heads = f.spec.layers.front().n_kv_heads;
  const bool is_new = f.has(Role::attn_norm_2) || (kv_heads != 1 && kv_heads != heads);
  f.set("new_decoder_architecture", is_new);
  f.set("multi_query", !is_new && kv_heads == 1);
  if (is_new) f.set("num_kv_heads", kv_heads);
  f.set("num_ln_in_parallel_attn", is_new && f.has(Role::attn_norm_2) ? 2 : 1);
  f.fill_integer("ffn_hidden_size", Setting::ffn_dim);
}

void map_falcon(Mapping& m) {
  if (m.filling != nullptr) fill_falcon(*m.filling);
  map_common(m);
  map_rope(m);
  map_layer_norm(m, "layer_norm_epsilon");
  m.set(Setting::ffn_dim, 4 * m.given(Setting::d_model), "ffn_hidden_size");
  m.copy_integer(Setting::ffn_dim, "ffn_hidden_size");
  if (!m.settings.has(Setting::context)) m.set(Setting::context, std::int64_t{2048}, "max_position_embeddings");
  // num_kv_heads is used only in the new architecture. In the old architecture the number of KV heads is 1 or the number of heads.
  const bool is_new = m.boolean("new_decoder_architecture").value_or(false);
  if (is_new) m.copy_integer(Setting::n_kv_heads, "num_kv_heads");
  else m.set(Setting::n_kv_heads, m.boolean("multi_query").value_or(true) ? 1 : m.given(Setting::n_heads), "multi_query");
  m.expect_boolean("alibi", false);
  m.expect_boolean("bias", false);
  m.expect_boolean("parallel_attn", true);
  m.expect_text("activation", {"gelu"});
}

// Maps GPT-BigCode (StarCoder): the keys of GPT-2, with one KV head.
void map_bigcode(Mapping& m) {
  map_gpt2(m);
  m.expect_boolean("multi_query", true);
  m.set(Setting::n_kv_heads, std::int64_t{1}, "multi_query");
}

void map_gptneox(Mapping& m) {
  if (m.filling != nullptr) {
    fill_partial_rope(*m.filling, "rotary_pct");
    m.filling->fill_number("rotary_emb_base", Setting::rope_theta);
    m.filling->set("use_parallel_residual", m.filling->spec.wiring == Wiring::parallel);
  }
  map_common(m);
  map_layer_norm(m, "layer_norm_eps");
  map_rope(m);
  const Json* rope = rope_object(m, "full_attention");
  if (find_in(rope, "rope_theta") == nullptr) m.copy_number(Setting::rope_theta, "rotary_emb_base");
  map_partial_rope(m);
  if (!m.settings.has(Setting::rope_dim)) {
    const double share = m.number("rotary_pct").value_or(0.25), dim = static_cast<double>(head_dim(m)) * share;
    if (dim >= 0.0 && dim < 1e9) m.set(Setting::rope_dim, static_cast<std::int64_t>(dim), "rotary_pct");
  }
  m.set(Setting::n_kv_heads, m.given(Setting::n_heads), "num_attention_heads");
  m.copy_boolean(Setting::parallel_residual, "use_parallel_residual");
  m.expect_text("hidden_act", {"gelu"});
}

void map_phi(Mapping& m) {
  map_common(m);
  map_layer_norm(m, "layer_norm_eps");
  map_rope(m);
  map_partial_rope(m);
  if (!m.settings.has(Setting::rope_dim)) m.set(Setting::rope_dim, head_dim(m) / 2, "partial_rotary_factor");
  m.expect_boolean("qk_layernorm", false);
  m.expect_text("hidden_act", {"gelu_new", "gelu_pytorch_tanh"});
}

void map_exaone(Mapping& m) {
  map_common(m);
  m.copy_integer(Setting::n_layers, "num_layers");
  m.copy_number(Setting::rms_norm_eps, "layer_norm_epsilon");
  map_rope(m);
  m.expect_text("activation_function", {"silu"});
}

void map_internlm2(Mapping& m) {
  map_common(m);
  map_rope(m);
  expect_silu(m);
}

constexpr TensorRow kGpt2Rows[] = {
    {Role::token_embd, "wte.weight"}, {Role::position_embd, "wpe.weight"},
    {Role::output_norm, "ln_f.weight"}, {Role::output_norm_bias, "ln_f.bias"}, {Role::output, "lm_head.weight"},
    {Role::attn_norm, "ln_1.weight"}, {Role::attn_norm_bias, "ln_1.bias"},
    {Role::attn_qkv, "attn.c_attn.weight", transposed}, {Role::attn_qkv_bias, "attn.c_attn.bias"},
    {Role::attn_output, "attn.c_proj.weight", transposed}, {Role::attn_output_bias, "attn.c_proj.bias"},
    {Role::ffn_norm, "ln_2.weight"}, {Role::ffn_norm_bias, "ln_2.bias"},
    {Role::ffn_up, "mlp.c_fc.weight", transposed}, {Role::ffn_up_bias, "mlp.c_fc.bias"},
    {Role::ffn_down, "mlp.c_proj.weight", transposed}, {Role::ffn_down_bias, "mlp.c_proj.bias"},
};
constexpr TensorRow kBigCodeRows[] = {
    {Role::token_embd, "wte.weight"}, {Role::position_embd, "wpe.weight"},
    {Role::output_norm, "ln_f.weight"}, {Role::output_norm_bias, "ln_f.bias"}, {Role::output, "lm_head.weight"},
    {Role::attn_norm, "ln_1.weight"}, {Role::attn_norm_bias, "ln_1.bias"},
    {Role::attn_qkv, "attn.c_attn.weight"}, {Role::attn_qkv_bias, "attn.c_attn.bias"},
    {Role::attn_output, "attn.c_proj.weight"}, {Role::attn_output_bias, "attn.c_proj.bias"},
    {Role::ffn_norm, "ln_2.weight"}, {Role::ffn_norm_bias, "ln_2.bias"},
    {Role::ffn_up, "mlp.c_fc.weight"}, {Role::ffn_up_bias, "mlp.c_fc.bias"},
    {Role::ffn_down, "mlp.c_proj.weight"}, {Role::ffn_down_bias, "mlp.c_proj.bias"},
};
constexpr TensorRow kGptNeoXRows[] = {
    {Role::token_embd, "embed_in.weight"}, {Role::output, "embed_out.weight"}, {Role::output, "lm_head.weight"},
    {Role::output_norm, "final_layer_norm.weight"}, {Role::output_norm_bias, "final_layer_norm.bias"},
    {Role::attn_norm, "input_layernorm.weight"}, {Role::attn_norm_bias, "input_layernorm.bias"},
    {Role::ffn_norm, "post_attention_layernorm.weight"}, {Role::ffn_norm_bias, "post_attention_layernorm.bias"},
    {Role::attn_qkv, "attention.query_key_value.weight", falcon_qkv}, {Role::attn_qkv_bias, "attention.query_key_value.bias", falcon_qkv},
    {Role::attn_output, "attention.dense.weight"}, {Role::attn_output_bias, "attention.dense.bias"},
    {Role::ffn_up, "mlp.dense_h_to_4h.weight"}, {Role::ffn_up_bias, "mlp.dense_h_to_4h.bias"},
    {Role::ffn_down, "mlp.dense_4h_to_h.weight"}, {Role::ffn_down_bias, "mlp.dense_4h_to_h.bias"},
};
constexpr TensorRow kPhiRows[] = {
    {Role::token_embd, "embed_tokens.weight"}, {Role::output, "lm_head.weight"}, {Role::output_bias, "lm_head.bias"},
    {Role::output_norm, "final_layernorm.weight"}, {Role::output_norm_bias, "final_layernorm.bias"},
    {Role::attn_norm, "input_layernorm.weight"}, {Role::attn_norm_bias, "input_layernorm.bias"},
    {Role::attn_output, "self_attn.dense.weight"}, {Role::attn_output_bias, "self_attn.dense.bias"},
    {Role::ffn_up, "mlp.fc1.weight"}, {Role::ffn_up_bias, "mlp.fc1.bias"},
    {Role::ffn_down, "mlp.fc2.weight"}, {Role::ffn_down_bias, "mlp.fc2.bias"},
};
constexpr TensorRow kExaoneRows[] = {
    {Role::token_embd, "wte.weight"}, {Role::output, "lm_head.weight"}, {Role::output_norm, "ln_f.weight"},
    {Role::attn_norm, "ln_1.weight"}, {Role::attn_q, "attn.attention.q_proj.weight"}, {Role::attn_k, "attn.attention.k_proj.weight"},
    {Role::attn_v, "attn.attention.v_proj.weight"}, {Role::attn_output, "attn.attention.out_proj.weight"},
    {Role::ffn_norm, "ln_2.weight"}, {Role::ffn_gate, "mlp.c_fc_0.weight"}, {Role::ffn_up, "mlp.c_fc_1.weight"}, {Role::ffn_down, "mlp.c_proj.weight"},
};
constexpr TensorRow kInternLm2Rows[] = {
    {Role::token_embd, "tok_embeddings.weight"}, {Role::output, "output.weight"}, {Role::output_norm, "norm.weight"},
    {Role::attn_norm, "attention_norm.weight"}, {Role::attn_qkv, "attention.wqkv.weight", internlm_qkv},
    {Role::attn_qkv_bias, "attention.wqkv.bias", internlm_qkv},
    {Role::attn_output, "attention.wo.weight"}, {Role::attn_output_bias, "attention.wo.bias"}, {Role::ffn_norm, "ffn_norm.weight"},
    {Role::ffn_gate, "feed_forward.w1.weight"}, {Role::ffn_up, "feed_forward.w3.weight"}, {Role::ffn_down, "feed_forward.w2.weight"},
};
constexpr TensorRow kFalconRows[] = {
    {Role::token_embd, "word_embeddings.weight"}, {Role::output, "lm_head.weight"},
    {Role::output_norm, "ln_f.weight"}, {Role::output_norm_bias, "ln_f.bias"},
    {Role::attn_norm, "ln_mlp.weight"}, {Role::attn_norm_bias, "ln_mlp.bias"},  // with two norms, attn_norm_2 is the attention's
    {Role::attn_norm_2, "ln_attn.weight"}, {Role::attn_norm_2_bias, "ln_attn.bias"},
    {Role::attn_norm, "input_layernorm.weight"}, {Role::attn_norm_bias, "input_layernorm.bias"},
    {Role::attn_qkv, "self_attention.query_key_value.weight", falcon_qkv},
    {Role::attn_output, "self_attention.dense.weight"},
    {Role::ffn_up, "mlp.dense_h_to_4h.weight"}, {Role::ffn_down, "mlp.dense_4h_to_h.weight"},
};

constexpr Table kOlderTables[] = {
    {"gpt2", "gpt2", map_gpt2, {kGpt2Rows}, "h.", true, {}, "transformer."},
    {"falcon", "falcon", map_falcon, {kFalconRows}, "h.", true, {}, "transformer."},
    {"gpt_bigcode", "starcoder", map_bigcode, {kBigCodeRows}, "h.", true, {}, "transformer."},
    {"gpt_neox", "gptneox", map_gptneox, {kGptNeoXRows}, "layers.", true, {}, "gpt_neox."},
    {"phi", "phi2", map_phi, {kAttentionRows, kPhiRows}},
    {"exaone", "exaone", map_exaone, {kExaoneRows}, "h.", true, {}, "transformer."},
    {"internlm2", "internlm2", map_internlm2, {kInternLm2Rows}},
};

}  // namespace

std::span<const Table> older_tables() noexcept { return kOlderTables; }

}  // namespace tessera::detail::hub
