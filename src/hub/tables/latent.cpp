// Latent attention: DeepSeek V2 and V3, and similar models.
#include "hub/tables/tables.hpp"
#include "hub/written/common_keys.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::int64_t kSoftmaxRouting = 1, kSigmoidRouting = 2;  // Setting::expert_routing

// Sets the keys of config.json for the sizes of heads. They come from the layer's fields for latent attention (plain_dim, head_value_dim,
// ...), because the settings with the usual names (key_dim, value_dim) describe the one latent KV head that all query heads share.
void fill_latent(Filling& f) {
  const LayerSpec& layer = f.spec.layers.front();
  const std::int64_t turned = f.spec.ropes.empty() ? 0 : f.spec.ropes.front().dim;
  f.set("qk_nope_head_dim", std::int64_t{layer.plain_dim});
  f.set("qk_rope_head_dim", turned);
  f.set("head_dim", turned);
  f.set("kv_lora_rank", std::int64_t{layer.value_dim});
  f.set("v_head_dim", std::int64_t{layer.head_value_dim});
  f.set("q_lora_rank", layer.query_rank == 0 ? Json() : Json(std::int64_t{layer.query_rank}));
  f.set("num_key_value_heads", std::int64_t{layer.n_heads});
}

void map_latent(Mapping& m) {
  if (m.filling != nullptr) fill_latent(*m.filling);
  map_common(m);
  map_rope(m);
  map_grouped_experts(m);
  expect_silu(m);
  const std::int64_t plain = m.integer("qk_nope_head_dim").value_or(0), turned = m.integer("qk_rope_head_dim").value_or(0);
  const std::int64_t rank = m.integer("kv_lora_rank").value_or(0);
  m.set(Setting::n_kv_heads, std::int64_t{1}, "kv_lora_rank");
  m.set(Setting::key_dim, rank + turned, "kv_lora_rank");
  m.set(Setting::value_dim, rank, "kv_lora_rank");
  m.set(Setting::latent_key_dim, plain + turned, "qk_nope_head_dim");
  m.copy_integer(Setting::latent_value_dim, "v_head_dim");
  m.copy_integer(Setting::latent_rank, "kv_lora_rank");
  m.copy_integer(Setting::query_rank, "q_lora_rank");
  m.set(Setting::rope_dim, turned, "qk_rope_head_dim");
  m.expect_boolean("rope_interleave", true);
  m.copy_integer(Setting::n_further_layers, "num_nextn_predict_layers");
  // The setting is a tenth of the number in folders, as in GGUF.
  const auto multiplier = m.settings.find(Setting::yarn_log_multiplier);
  if (multiplier && std::get_if<double>(&*multiplier) != nullptr) {
    m.set(Setting::yarn_log_multiplier, 0.1 * std::get<double>(*multiplier), "rope_scaling.mscale_all_dim");
  }
}

void map_deepseek_v2(Mapping& m) {
  if (m.filling != nullptr) {
    const auto groups = m.filling->integer(Setting::n_expert_groups);
    m.filling->set("topk_method", groups.value_or(0) > 1 ? "group_limited_greedy" : "greedy");
    m.filling->set("norm_topk_prob", false);
  }
  map_latent(m);
  m.set(Setting::expert_routing, kSoftmaxRouting, "scoring_func");
  m.settings.remove(Setting::renormalise_experts);  // the type's class never divides weights by their sum
  if (m.text("topk_method").value_or("greedy") == "greedy") {
    m.settings.remove(Setting::n_expert_groups);
    m.settings.remove(Setting::n_used_expert_groups);
  }
  m.expect_text("scoring_func", {"softmax"});
}

void map_deepseek_v3(Mapping& m) {
  map_latent(m);
  m.set(Setting::expert_routing, kSigmoidRouting, "scoring_func");
  m.expect_text("scoring_func", {"sigmoid"});
}

void map_mistral4(Mapping& m) {
  if (m.filling != nullptr) fill_temperature(*m.filling);
  map_latent(m);
  const Json* rope = rope_object(m, "full_attention");
  const auto rate = m.number_of(find_in(rope, "llama_4_scaling_beta"), "rope_parameters.llama_4_scaling_beta");
  m.set(Setting::temperature_scale, rate.value_or(0.0), "rope_parameters.llama_4_scaling_beta");
}

constexpr TensorRow kLatentRows[] = {
    {Role::latent_q, "self_attn.q_proj.weight"},
    {Role::latent_q_a, "self_attn.q_a_proj.weight"},
    {Role::latent_q_a_norm, "self_attn.q_a_layernorm.weight"},
    {Role::latent_q_b, "self_attn.q_b_proj.weight"},
    {Role::latent_kv_a, "self_attn.kv_a_proj_with_mqa.weight"},
    {Role::latent_kv_norm, "self_attn.kv_a_layernorm.weight"},
    {Role::latent_k_b, "self_attn.kv_b_proj.weight", latent_keys},
    {Role::latent_v_b, "self_attn.kv_b_proj.weight", latent_values},
    {Role::latent_output, "self_attn.o_proj.weight"},
};

constexpr Table kLatentTables[] = {
    {"deepseek_v2", "deepseek2", map_deepseek_v2, {kModelRows, kNormRows, kLatentRows, kFeedRows, kExpertRows}},
    {"deepseek_v3", "deepseek2", map_deepseek_v3, {kModelRows, kNormRows, kLatentRows, kFeedRows, kExpertRows, kFurtherRows}},
    {"kimi_k2", "deepseek2", map_deepseek_v3, {kModelRows, kNormRows, kLatentRows, kFeedRows, kExpertRows, kFurtherRows}},
    {"glm4_moe_lite", "deepseek2", map_deepseek_v3, {kModelRows, kNormRows, kLatentRows, kFeedRows, kExpertRows, kFurtherRows}},
    {"mistral4", "mistral4", map_mistral4, {kModelRows, kNormRows, kLatentRows, kFeedRows, kExpertRows}},
};

}  // namespace

std::span<const Table> latent_tables() noexcept { return kLatentTables; }

}  // namespace tessera::detail::hub
