#include "files/gguf/gguf_settings.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <tessera/unstable/files/gguf_settings.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/gguf/gguf_format.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {

namespace {

// The key that a setting has in GGUF files. If the key begins with a dot, the architecture's name stands before it: ".context_length" means
// "llama.context_length". If the key is empty, GGUF files do not have the setting.
struct KeyRow {
  Setting setting;
  std::string_view key;
  std::string_view older = {};  // another key for the same setting, which some converters write
};

constexpr KeyRow kKeys[] = {
    {Setting::architecture, "general.architecture"},
    {Setting::name, "general.name"},
    {Setting::pooling, ".pooling_type"},
    {Setting::text_tokens, "tessera.text_tokens"},
    {Setting::query_prompt, "tessera.query_prompt"},
    {Setting::document_prompt, "tessera.document_prompt"},
    {Setting::vocab_size, ".vocab_size"},
    {Setting::context, ".context_length"},
    {Setting::d_model, ".embedding_length"},
    {Setting::n_layers, ".block_count"},
    {Setting::n_further_layers, ".nextn_predict_layers"},
    {Setting::feature_layers, ".target_layers"},
    {Setting::old_feature_layers, ".extract_layers"},
    {Setting::target_width, ".target_hidden_size"},
    {Setting::norm_before_residual, ".norm_before_residual"},
    {Setting::norm_before_fc, ".norm_before_fc"},
    {Setting::weights_of, "tessera.weights_of"},
    {Setting::rms_norm_eps, ".attention.layer_norm_rms_epsilon"},
    {Setting::layer_norm_eps, ".attention.layer_norm_epsilon"},
    {Setting::embedding_scale, ".embedding_scale"},
    {Setting::residual_scale, ".residual_scale"},
    {Setting::logit_scale, ".logit_scale"},
    {Setting::logit_softcap, ".final_logit_softcapping"},
    {Setting::per_layer_dim, ".embedding_length_per_layer_input"},
    {Setting::parallel_residual, ".use_parallel_residual"},
    {Setting::causal, ".attention.causal"},
    {Setting::n_heads, ".attention.head_count"},
    {Setting::n_kv_heads, ".attention.head_count_kv"},
    {Setting::key_dim, ".attention.key_length"},
    {Setting::value_dim, ".attention.value_length"},
    {Setting::windowed_key_dim, ".attention.key_length_swa"},
    {Setting::windowed_value_dim, ".attention.value_length_swa"},
    {Setting::score_scale, ".attention.scale"},
    {Setting::score_softcap, ".attn_logit_softcapping"},
    {Setting::window, ".attention.sliding_window"},
    {Setting::window_pattern, ".attention.sliding_window_pattern"},
    {Setting::global_tokens, ".attention.global_tokens"},
    {Setting::temperature_scale, ".attention.temperature_scale"},
    {Setting::temperature_length, ".attention.temperature_length"},
    {Setting::shared_kv_layers, ".attention.shared_kv_layers"},
    {Setting::max_alibi_bias, ".attention.max_alibi_bias"},
    {Setting::clamp_kqv, ".attention.clamp_kqv"},
    {Setting::full_attention_interval, ".full_attention_interval"},
    {Setting::recurrent_layers, ".attention.recurrent_layers"},
    {Setting::latent_key_dim, ".attention.key_length_mla"},
    {Setting::latent_value_dim, ".attention.value_length_mla"},
    {Setting::latent_rank, ".attention.kv_lora_rank"},
    {Setting::query_rank, ".attention.q_lora_rank"},
    {Setting::rope_dim, ".rope.dimension_count"},
    {Setting::windowed_rope_dim, ".rope.dimension_count_swa"},
    {Setting::rope_theta, ".rope.freq_base"},
    {Setting::windowed_rope_theta, ".rope.freq_base_swa"},
    {Setting::rope_scale_linear, ".rope.scale_linear"},
    {Setting::rope_scaling, ".rope.scaling.type"},
    {Setting::rope_scaling_factor, ".rope.scaling.factor"},
    {Setting::rope_is_finetuned, ".rope.scaling.finetuned"},
    {Setting::original_context, ".rope.scaling.original_context_length"},
    {Setting::rope_magnitude, ".rope.scaling.attn_factor"},
    {Setting::yarn_magnitude, ".rope.scaling.yarn_attn_factor"},
    {Setting::yarn_beta_fast, ".rope.scaling.yarn_beta_fast"},
    {Setting::yarn_beta_slow, ".rope.scaling.yarn_beta_slow"},
    {Setting::yarn_share, ".rope.scaling.yarn_ext_factor"},
    {Setting::yarn_log_multiplier, ".rope.scaling.yarn_log_multiplier"},
    {Setting::ffn_dim, ".feed_forward_length"},
    {Setting::n_experts, ".expert_count"},
    {Setting::n_used_experts, ".expert_used_count"},
    {Setting::n_dense_layers, ".leading_dense_block_count"},
    {Setting::expert_dim, ".expert_feed_forward_length"},
    {Setting::expert_width, ".moe_latent_size"},
    {Setting::n_shared_experts, ".expert_shared_count"},
    {Setting::shared_expert_dim, ".expert_shared_feed_forward_length"},
    {Setting::expert_routing, ".expert_gating_func"},
    {Setting::renormalise_experts, ".expert_weights_norm"},
    {Setting::expert_scale, ".expert_weights_scale"},
    {Setting::n_expert_groups, ".expert_group_count"},
    {Setting::n_used_expert_groups, ".expert_group_used_count"},
    {Setting::moe_every_n_layers, ".moe_every_n_layers"},
    {Setting::interleave_moe_layer_step, ".interleave_moe_layer_step"},
    {Setting::conv_width, ".ssm.conv_kernel"},
    {Setting::short_conv_width, ".shortconv.l_cache"},
    {Setting::state_keys, ".ssm.state_size"},
    {Setting::state_heads, ".ssm.time_step_rank"},
    {Setting::state_groups, ".ssm.group_count"},
    {Setting::state_columns, ".ssm.inner_size"},
    {Setting::tokenizer_model, "tokenizer.ggml.model"},
    {Setting::pre_tokenizer, "tokenizer.ggml.pre"},
    {Setting::tokens, "tokenizer.ggml.tokens"},
    {Setting::token_types, "tokenizer.ggml.token_type"},
    {Setting::token_scores, "tokenizer.ggml.scores"},
    {Setting::merges, "tokenizer.ggml.merges"},
    {Setting::suppressed_tokens, "tokenizer.ggml.suppress_tokens"},
    {Setting::charsmap, "tokenizer.ggml.precompiled_charsmap"},
    {Setting::bos_token, "tokenizer.ggml.bos_token_id"},
    {Setting::eos_token, "tokenizer.ggml.eos_token_id"},
    {Setting::unknown_token, "tokenizer.ggml.unknown_token_id"},
    {Setting::padding_token, "tokenizer.ggml.padding_token_id"},
    {Setting::end_of_turn_token, "tokenizer.ggml.eot_token_id"},
    {Setting::end_of_message_token, "tokenizer.ggml.eom_token_id"},
    {Setting::fill_before_token, "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
    {Setting::fill_behind_token, "tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
    {Setting::fill_middle_token, "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
    {Setting::add_bos, "tokenizer.ggml.add_bos_token"},
    {Setting::add_eos, "tokenizer.ggml.add_eos_token"},
    {Setting::add_space_prefix, "tokenizer.ggml.add_space_prefix"},
    {Setting::remove_extra_spaces, "tokenizer.ggml.remove_extra_whitespaces"},
    {Setting::end_tokens, ""},
    {Setting::tokenizer_json, ""},
    {Setting::sentencepiece_model, ""},
    {Setting::chat_template, "tokenizer.chat_template"},
    {Setting::sampling_temperature, "general.sampling.temp"},
    {Setting::sampling_top_k, "general.sampling.top_k"},
    {Setting::sampling_top_p, "general.sampling.top_p"},
    {Setting::sampling_min_p, "general.sampling.min_p"},
};

constexpr bool keys_are_in_order() noexcept {
  for (std::size_t i = 0; i < std::size(kKeys); ++i) {
    if (static_cast<std::size_t>(kKeys[i].setting) != i) return false;
  }
  return std::size(kKeys) == kSettings;
}
static_assert(keys_are_in_order(), "every setting has one key, in the order of the settings");

constexpr std::string_view kTemplateKey = kKeys[static_cast<std::size_t>(Setting::chat_template)].key;

std::string_view text_of(const GgufEntry& entry) noexcept {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

SettingValue value_of(const GgufEntry& entry) noexcept {
  switch (entry.type) {
    case GgufType::array: return ValueList(entry.element_type, entry.count, entry.bytes);
    case GgufType::string: return text_of(entry);
    case GgufType::boolean: return entry.bytes[0] != std::byte{0};
    case GgufType::u64: return load<std::uint64_t>(entry.bytes.data());
    case GgufType::f32:
    case GgufType::f64: return ValueList(entry.type, 1, entry.bytes).number(0);
    default: return ValueList(entry.type, 1, entry.bytes).integer(0);
  }
}

}  // namespace

GgufSettings::GgufSettings(const ByteSource& source, const GgufHeader& header) : source_(&source), header_(&header) {
  if (const GgufEntry* entry = header.find("general.architecture"); entry != nullptr && entry->type == GgufType::string) {
    architecture_ = text_of(*entry);
  }
  for (const KeyRow& row : kKeys) {
    if (row.key.empty()) continue;
    const GgufEntry* entry = header.find(full(row.key));
    if (entry == nullptr && !row.older.empty()) entry = header.find(row.older);
    if (entry != nullptr) entries_[static_cast<std::size_t>(row.setting)] = static_cast<std::uint32_t>(entry - header.entries.data() + 1);
  }
}

std::string GgufSettings::full(std::string_view key) const {
  return key.starts_with('.') ? std::string(architecture_).append(key) : std::string(key);
}

const GgufEntry* GgufSettings::entry_of(Setting setting) const noexcept {
  const std::uint32_t at = setting < Setting::count ? entries_[static_cast<std::size_t>(setting)] : 0;
  return at == 0 ? nullptr : &header_->entries[at - 1];
}

std::optional<SettingValue> GgufSettings::find(Setting setting) const noexcept {
  const GgufEntry* entry = entry_of(setting);
  return entry == nullptr ? std::nullopt : std::optional(value_of(*entry));
}

std::string GgufSettings::called(Setting setting) const {
  if (const GgufEntry* entry = entry_of(setting)) return printable(entry->key);
  const std::string_view key = kKeys[static_cast<std::size_t>(setting)].key;
  return key.empty() ? Settings::called(setting) : printable(full(key));
}

std::string GgufSettings::place(Setting setting) const {
  const GgufEntry* entry = entry_of(setting);
  return entry == nullptr ? "key " + called(setting) : fmt::format("key {} (offset {})", called(setting), entry->offset);
}

std::string GgufSettings::kind(Setting setting) const {
  const GgufEntry* entry = entry_of(setting);
  return entry == nullptr ? Settings::kind(setting) : fmt::format("of type {}", to_string(entry->type));
}

std::string GgufSettings::origin() const { return name_of(*source_); }

std::optional<FileKey> GgufSettings::file_key(std::size_t index) const noexcept {
  if (index >= header_->entries.size()) return std::nullopt;
  const GgufEntry& entry = header_->entries[index];
  return FileKey{entry.key, value_of(entry)};
}

std::optional<SettingValue> GgufSettings::find_key(std::string_view name) const noexcept {
  const GgufEntry* entry = header_->find(name);
  return entry == nullptr ? std::nullopt : std::optional(value_of(*entry));
}

// Returns the value of the key tokenizer.chat_template.NAME.
std::optional<std::string_view> GgufSettings::chat_template(std::string_view name) const noexcept {
  if (name.empty()) return Settings::chat_template(name);
  for (const GgufEntry& entry : header_->entries) {
    std::string_view key = entry.key;
    if (entry.type != GgufType::string || !key.starts_with(kTemplateKey) || !key.ends_with(name)) continue;
    key.remove_prefix(kTemplateKey.size());
    if (key.size() == name.size() + 1 && key.front() == '.') return text_of(entry);
  }
  return std::nullopt;
}

}  // namespace tessera::detail

namespace tessera {

Status write_settings(GgufWriter& writer, const Settings& settings) noexcept {
  return detail::guard([&]() -> Status {
    TESSERA_TRY(const std::string_view architecture, settings.string(Setting::architecture));
    for (const detail::KeyRow& row : detail::kKeys) {
      const auto value = row.key.empty() ? std::nullopt : settings.find(row.setting);
      if (!value) continue;
      const std::string key = row.key.starts_with('.') ? std::string(architecture).append(row.key) : std::string(row.key);
      const Status written = std::visit(
          [&]<class T>(const T& of) -> Status {
            if constexpr (std::is_same_v<T, bool>) return writer.set_boolean(key, of);
            else if constexpr (std::is_same_v<T, double>) return writer.set(key, static_cast<float>(of));
            else if constexpr (std::is_same_v<T, std::string_view>) return writer.set_string(key, of);
            else if constexpr (std::is_same_v<T, ValueList>) return writer.set_list(key, of);
            else if (std::cmp_less(of, 0)) return writer.set(key, static_cast<std::int32_t>(of));
            else if (static_cast<std::uint64_t>(of) <= 0xFFFFFFFFu) return writer.set(key, static_cast<std::uint32_t>(of));
            else return writer.set(key, static_cast<std::uint64_t>(of));
          },
          *value);
      TESSERA_TRY_STATUS(written);
    }
    return {};
  });
}

}  // namespace tessera
