// Encoders, which compute embeddings of texts: BERT, RoBERTa (XLM-R is a RoBERTa), Nomic BERT, ModernBERT.
#include "core/printable.hpp"
#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

namespace {

// Maps the norm's epsilon. `usual`: the value if config.json does not state it.
void map_norm(Mapping& m, std::string_view key, double usual) {
  map_layer_norm(m, key);
  if (m.config.find(key) == nullptr) m.set(Setting::layer_norm_eps, usual, key);
}

void map_encoder(Mapping& m) {
  if (m.filling != nullptr) m.filling->set("type_vocab_size", static_cast<std::int64_t>(m.filling->rows(Role::segment_embd)));
  map_common(m);
  map_norm(m, "layer_norm_eps", 1e-12);
  m.settings.remove(Setting::n_kv_heads);
  m.expect_text("hidden_act", {"gelu"});
  m.expect_text("position_embedding_type", {"absolute"});
  m.expect_boolean("is_decoder", false);
  m.expect_boolean("add_cross_attention", false);
}

void map_bert(Mapping& m) { map_encoder(m); }

// RoBERTa numbers positions from the padding token's id plus 1 on (2), so the first two rows of the table of positions are never used.
void map_roberta(Mapping& m) {
  if (m.filling != nullptr) m.filling->set("max_position_embeddings", std::int64_t{m.filling->spec.context} + 2);
  map_encoder(m);
  m.expect_integer("pad_token_id", 1);
  const std::int64_t rows = m.given(Setting::context);
  if (rows > 2) m.set(Setting::context, rows - 2, "max_position_embeddings");
  else m.refuse(ErrorCode::corrupt_file, "max_position_embeddings", "it is {}; a table of positions has more than 2 rows", rows);
}

// Sets the base of a rope, for models whose config.json does not have transformers' usual keys for it.
void set_usual_theta(Mapping& m, double theta, std::string_view key) {
  const Json* parameters = m.config.find("rope_parameters");
  const bool is_said = find_in(parameters, "rope_theta") != nullptr || find_in(find_in(parameters, "full_attention"), "rope_theta") != nullptr ||
                       m.config.find("rope_theta") != nullptr;
  if (!is_said) m.set(Setting::rope_theta, theta, key);
}

void map_modernbert(Mapping& m) {
  if (m.filling != nullptr) {
    Filling& f = *m.filling;
    for (std::size_t i = 0; i < f.spec.ropes.size() && i < 2; ++i) f.set_number(i == 0 ? "global_rope_theta" : "local_rope_theta", f.spec.ropes[i].theta);
    f.fill_integer("local_attention", Setting::window);
    fill_window_types(f, WhenAlike::always);
  }
  map_common(m);
  map_norm(m, "norm_eps", 1e-5);
  m.settings.remove(Setting::n_kv_heads);
  map_rope(m);
  set_usual_theta(m, m.number("global_rope_theta").value_or(160000.0), "global_rope_theta");
  const Json* windowed = find_in(m.config.find("rope_parameters"), "sliding_attention");
  auto local = m.number_of(find_in(windowed, "rope_theta"), "rope_parameters.sliding_attention.rope_theta");
  if (!local) local = m.number("local_rope_theta");
  m.set(Setting::windowed_rope_theta, local.value_or(10000.0), "local_rope_theta");
  m.set(Setting::window, m.integer("local_attention").value_or(128), "local_attention");
  const auto kinds = m.texts("layer_types");
  std::vector<std::uint8_t> pattern;
  for (const std::string_view kind : kinds) {
    if (kind != "sliding_attention" && kind != "full_attention") m.refuse(ErrorCode::unsupported, "layer_types", "a layer of kind \"{}\"", printable(kind));
    pattern.push_back(kind == "sliding_attention" ? 1 : 0);
  }
  if (!pattern.empty()) m.set(Setting::window_pattern, std::move(pattern), "layer_types");
  else m.set(Setting::window_pattern, m.integer("global_attn_every_n_layers").value_or(3), "global_attn_every_n_layers");
  m.expect_text("hidden_activation", {"gelu"});
  m.expect_text("classifier_activation", {"gelu"});
  m.expect_boolean("attention_bias", false);
  m.expect_boolean("mlp_bias", false);
  m.expect_boolean("norm_bias", false);
}

// Maps Nomic BERT. Its first folders have the keys of GPT-2.
void map_nomic(Mapping& m) {
  map_common(m);
  m.copy_integer(Setting::d_model, "n_embd");
  m.copy_integer(Setting::n_layers, "n_layer");
  m.copy_integer(Setting::n_heads, "n_head");
  m.copy_integer(Setting::ffn_dim, "n_inner");
  m.copy_integer(Setting::context, "n_positions");
  map_norm(m, "layer_norm_eps", 1e-12);
  m.copy_number(Setting::layer_norm_eps, "layer_norm_epsilon");
  m.settings.remove(Setting::n_kv_heads);
  map_rope(m);
  set_usual_theta(m, m.number("rotary_emb_base").value_or(1000.0), "rotary_emb_base");
  m.expect_text("hidden_act", {"silu"});
  m.expect_text("activation_function", {"swiglu"});
  if (m.number("rotary_emb_fraction").value_or(1.0) != 1.0) m.refuse(ErrorCode::unsupported, "rotary_emb_fraction", "tessera rotates whole heads");
  for (const std::string_view key : {"prenorm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "rotary_emb_interleaved", "use_rms_norm", "parallel_block"}) {
    m.expect_boolean(key, false);
  }
}

void map_jina3(Mapping& m) {
  map_encoder(m);
  map_rope(m);
  set_usual_theta(m, m.number("rotary_emb_base").value_or(20000.0), "rotary_emb_base");
}

void map_gte(Mapping& m) {
  map_encoder(m);
  map_rope(m);
  set_usual_theta(m, 160000.0, "rope_theta");
  m.expect_boolean("unpad_inputs", false);
  m.expect_text("layer_norm_type", {"layer_norm"});
  m.expect_boolean("logn_attention_scale", false);
}

void map_llama_encoder(Mapping& m) {
  map_common(m);
  map_rope(m);
  expect_silu(m);
}

constexpr TensorRow kEmbeddingRows[] = {
    {Role::token_embd, "embeddings.word_embeddings.weight"},
    {Role::segment_embd, "embeddings.token_type_embeddings.weight"},
    {Role::embd_norm, "embeddings.LayerNorm.weight"},
    {Role::embd_norm_bias, "embeddings.LayerNorm.bias"},
};
constexpr TensorRow kPositionRows[] = {{Role::position_embd, "embeddings.position_embeddings.weight"}};
constexpr TensorRow kPaddedPositionRows[] = {{Role::position_embd, "embeddings.position_embeddings.weight", behind_padding}};
constexpr TensorRow kEncoderRows[] = {
    {Role::attn_q, "attention.self.query.weight"}, {Role::attn_q_bias, "attention.self.query.bias"},
    {Role::attn_k, "attention.self.key.weight"}, {Role::attn_k_bias, "attention.self.key.bias"},
    {Role::attn_v, "attention.self.value.weight"}, {Role::attn_v_bias, "attention.self.value.bias"},
    {Role::attn_output, "attention.output.dense.weight"}, {Role::attn_output_bias, "attention.output.dense.bias"},
    {Role::attn_sum_norm, "attention.output.LayerNorm.weight"}, {Role::attn_sum_norm_bias, "attention.output.LayerNorm.bias"},
    {Role::ffn_up, "intermediate.dense.weight"}, {Role::ffn_up_bias, "intermediate.dense.bias"},
    {Role::ffn_down, "output.dense.weight"}, {Role::ffn_down_bias, "output.dense.bias"},
    {Role::ffn_sum_norm, "output.LayerNorm.weight"}, {Role::ffn_sum_norm_bias, "output.LayerNorm.bias"},
};
constexpr TensorRow kBertHeadRows[] = {
    {Role::head_in, "pooler.dense.weight", nullptr, Of::models_with_scores}, {Role::head_in_bias, "pooler.dense.bias", nullptr, Of::models_with_scores},
    {Role::head_out, "classifier.weight", nullptr, Of::models_with_scores}, {Role::head_out_bias, "classifier.bias", nullptr, Of::models_with_scores},
};
constexpr TensorRow kRobertaHeadRows[] = {
    {Role::head_in, "classifier.dense.weight", nullptr, Of::models_with_scores},
    {Role::head_in_bias, "classifier.dense.bias", nullptr, Of::models_with_scores},
    {Role::head_out, "classifier.out_proj.weight", nullptr, Of::models_with_scores},
    {Role::head_out_bias, "classifier.out_proj.bias", nullptr, Of::models_with_scores},
};

constexpr TensorRow kNomicRows[] = {
    {Role::token_embd, "embeddings.word_embeddings.weight"}, {Role::segment_embd, "embeddings.token_type_embeddings.weight"},
    {Role::embd_norm, "emb_ln.weight"}, {Role::embd_norm_bias, "emb_ln.bias"},
    {Role::attn_qkv, "attn.Wqkv.weight"}, {Role::attn_output, "attn.out_proj.weight"},
    {Role::attn_sum_norm, "norm1.weight"}, {Role::attn_sum_norm_bias, "norm1.bias"},
    {Role::ffn_up, "mlp.fc11.weight"}, {Role::ffn_gate, "mlp.fc12.weight"}, {Role::ffn_down, "mlp.fc2.weight"},
    {Role::ffn_sum_norm, "norm2.weight"}, {Role::ffn_sum_norm_bias, "norm2.bias"},
};
constexpr TensorRow kJina3Rows[] = {
    {Role::token_embd, "embeddings.word_embeddings.weight"}, {Role::segment_embd, "embeddings.token_type_embeddings.weight"},
    {Role::embd_norm, "emb_ln.weight"}, {Role::embd_norm_bias, "emb_ln.bias"},
    {Role::attn_qkv, "mixer.Wqkv.weight"}, {Role::attn_qkv_bias, "mixer.Wqkv.bias"},
    {Role::attn_output, "mixer.out_proj.weight"}, {Role::attn_output_bias, "mixer.out_proj.bias"},
    {Role::attn_sum_norm, "norm1.weight"}, {Role::attn_sum_norm_bias, "norm1.bias"},
    {Role::ffn_up, "mlp.fc1.weight"}, {Role::ffn_up_bias, "mlp.fc1.bias"},
    {Role::ffn_down, "mlp.fc2.weight"}, {Role::ffn_down_bias, "mlp.fc2.bias"},
    {Role::ffn_sum_norm, "norm2.weight"}, {Role::ffn_sum_norm_bias, "norm2.bias"},
};
constexpr TensorRow kGteRows[] = {
    {Role::attn_qkv, "attention.qkv_proj.weight"}, {Role::attn_qkv_bias, "attention.qkv_proj.bias"},
    {Role::attn_output, "attention.o_proj.weight"}, {Role::attn_output_bias, "attention.o_proj.bias"},
    {Role::attn_sum_norm, "attn_ln.weight"}, {Role::attn_sum_norm_bias, "attn_ln.bias"},
    {Role::ffn_up, "mlp.up_gate_proj.weight", first_half}, {Role::ffn_gate, "mlp.up_gate_proj.weight", second_half},
    {Role::ffn_down, "mlp.down_proj.weight"}, {Role::ffn_down_bias, "mlp.down_proj.bias"},
    {Role::ffn_sum_norm, "mlp_ln.weight"}, {Role::ffn_sum_norm_bias, "mlp_ln.bias"},
};
constexpr TensorRow kModernRows[] = {
    {Role::token_embd, "embeddings.tok_embeddings.weight"}, {Role::embd_norm, "embeddings.norm.weight"}, {Role::output_norm, "final_norm.weight"},
    {Role::attn_norm, "attn_norm.weight"}, {Role::attn_qkv, "attn.Wqkv.weight"}, {Role::attn_output, "attn.Wo.weight"},
    {Role::ffn_norm, "mlp_norm.weight"}, {Role::ffn_gate_up, "mlp.Wi.weight"}, {Role::ffn_down, "mlp.Wo.weight"},
    {Role::head_in, "head.dense.weight", nullptr, Of::models_with_scores}, {Role::head_in_bias, "head.dense.bias", nullptr, Of::models_with_scores},
    {Role::head_norm, "head.norm.weight", nullptr, Of::models_with_scores},
    {Role::head_out, "classifier.weight", nullptr, Of::models_with_scores}, {Role::head_out_bias, "classifier.bias", nullptr, Of::models_with_scores},
};

constexpr Table kEncoderTables[] = {
    {"nomic_bert", "nomic-bert", map_nomic, {kNomicRows}, "encoder.layers.", true, {}, ""},
    {"modernbert", "modern-bert", map_modernbert, {kModernRows}},
    {"jina_embeddings_v3", "jina-bert-v3", map_jina3, {kJina3Rows}, "encoder.layers.", true, {}, ""},
    {"gte", "gte", map_gte, {kEmbeddingRows, kGteRows, kBertHeadRows}, "encoder.layer.", true, {}, ""},
    {"new", "gte", map_gte, {kEmbeddingRows, kGteRows, kBertHeadRows}, "encoder.layer.", true, {}, ""},  // hubs' name for GTE
    {"eurobert", "eurobert", map_llama_encoder, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"llama_bidirec", "llama-embed", map_llama_encoder, {kModelRows, kNormRows, kPairedAttentionRows, kFeedRows}},
    {"bert", "bert", map_bert, {kEmbeddingRows, kPositionRows, kEncoderRows, kBertHeadRows}, "encoder.layer.", true, {}, ""},
    {"roberta", "bert", map_roberta, {kEmbeddingRows, kPaddedPositionRows, kEncoderRows, kRobertaHeadRows}, "encoder.layer.", true, {}, ""},
    {"xlm-roberta", "bert", map_roberta, {kEmbeddingRows, kPaddedPositionRows, kEncoderRows, kRobertaHeadRows}, "encoder.layer.", true, {}, ""},
};

}  // namespace

std::span<const Table> encoder_tables() noexcept { return kEncoderTables; }

}  // namespace tessera::detail::hub
