// Models whose folders have names of their own throughout: GPT-2 and Falcon.
#include "hub/tables/tables.hpp"

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

void map_falcon(Mapping& m) {
  map_common(m);
  map_rope(m);
  map_layer_norm(m, "layer_norm_epsilon");
  m.set(Setting::ffn_dim, 4 * m.given(Setting::d_model), "ffn_hidden_size");
  m.copy_integer(Setting::ffn_dim, "ffn_hidden_size");
  if (!m.settings.has(Setting::context)) m.set(Setting::context, std::int64_t{2048}, "max_position_embeddings");
  // num_kv_heads counts in the new architecture only; the older one has one KV head, or as many as heads.
  const bool is_new = m.boolean("new_decoder_architecture").value_or(false);
  if (is_new) m.copy_integer(Setting::n_kv_heads, "num_kv_heads");
  else m.set(Setting::n_kv_heads, m.boolean("multi_query").value_or(true) ? 1 : m.given(Setting::n_heads), "multi_query");
  m.expect_boolean("alibi", false);
  m.expect_boolean("bias", false);
  m.expect_boolean("parallel_attn", true);
  m.expect_text("activation", {"gelu"});
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
    {"gpt2", "gpt2", map_gpt2, {kGpt2Rows}, "h."},
    {"falcon", "falcon", map_falcon, {kFalconRows}, "h."},
};

}  // namespace

std::span<const Table> older_tables() noexcept { return kOlderTables; }

}  // namespace tessera::detail::hub
