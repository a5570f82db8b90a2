#include <tessera/extend/files/settings.hpp>

#include <array>

#include "core/error.hpp"
#include "files/value_types.hpp"

namespace tessera {

using detail::guard;

namespace {

constexpr std::array<std::string_view, kSettings> kNames = {
    "architecture", "name", "pooling", "text_tokens", "query_prompt", "document_prompt", "vocab_size", "context", "d_model", "n_layers", "n_further_layers", "feature_layers",
    "old_feature_layers", "target_width", "norm_before_residual", "norm_before_fc", "weights_of", "rms_norm_eps",
    "layer_norm_eps", "embedding_scale", "residual_scale", "logit_scale", "logit_softcap", "per_layer_dim", "parallel_residual", "causal",
    "n_heads", "n_kv_heads", "key_dim", "value_dim", "windowed_key_dim", "windowed_value_dim", "score_scale",
    "score_softcap", "window", "window_pattern", "global_tokens", "temperature_scale", "temperature_length",
    "shared_kv_layers", "max_alibi_bias", "clamp_kqv", "full_attention_interval", "recurrent_layers", "latent_key_dim",
    "latent_value_dim", "latent_rank", "query_rank", "rope_dim", "windowed_rope_dim", "rope_theta", "windowed_rope_theta",
    "rope_scale_linear", "rope_scaling", "rope_scaling_factor", "rope_is_finetuned", "original_context", "rope_magnitude",
    "yarn_magnitude", "yarn_beta_fast", "yarn_beta_slow", "yarn_share", "yarn_log_multiplier", "ffn_dim", "n_experts",
    "n_used_experts", "n_dense_layers", "expert_dim", "expert_width", "n_shared_experts", "shared_expert_dim",
    "expert_routing", "renormalise_experts", "expert_scale", "n_expert_groups", "n_used_expert_groups", "moe_every_n_layers",
    "interleave_moe_layer_step", "conv_width", "short_conv_width", "state_keys", "state_heads", "state_groups",
    "state_columns", "tokenizer_model", "pre_tokenizer", "tokens", "token_types", "token_scores", "merges",
    "suppressed_tokens", "charsmap", "bos_token", "eos_token", "unknown_token", "padding_token", "end_of_turn_token",
    "end_of_message_token", "fill_before_token", "fill_behind_token", "fill_middle_token", "add_bos", "add_eos",
    "add_space_prefix", "remove_extra_spaces", "end_tokens", "tokenizer_json", "sentencepiece_model", "chat_template",
    "sampling_temperature", "sampling_top_k", "sampling_top_p", "sampling_min_p",
};
static_assert(!kNames.back().empty(), "every setting has a name, in the order of the settings");

Error error_of(const Settings& settings, Setting setting, ErrorCode code, std::string message) {
  const std::string origin = settings.origin();
  return {code, std::move(message), origin.empty() ? settings.place(setting) : origin + ": " + settings.place(setting)};
}

// Returns convert(the setting's value). Errors: not_found; corrupt_file, the value has another type (`convert` returns nothing).
template <class T, class Convert>
Result<T> read(const Settings& settings, Setting setting, const char* wanted, const Convert& convert) noexcept {
  return guard([&]() -> Result<T> {
    TESSERA_TRY_STATUS(settings.status());
    const std::optional<SettingValue> value = settings.find(setting);
    if (!value) return error_of(settings, setting, ErrorCode::not_found, "is not in the file, and is needed");
    if (const std::optional<T> converted = convert(*value)) return *converted;
    if (const auto* number = std::get_if<std::int64_t>(&*value); number != nullptr && *number < 0) {
      return error_of(settings, setting, ErrorCode::corrupt_file, fmt::format("is {}; it must not be negative", *number));
    }
    return error_of(settings, setting, ErrorCode::corrupt_file, fmt::format("is {}, where {} is expected", settings.kind(setting), wanted));
  });
}

template <class T>
std::optional<T> get(const SettingValue& value) {
  const T* held = std::get_if<T>(&value);
  return held == nullptr ? std::nullopt : std::optional<T>(*held);
}

}  // namespace

std::string_view to_string(Setting setting) noexcept {
  return setting < Setting::count ? kNames[static_cast<std::size_t>(setting)] : std::string_view("?");
}

std::optional<Setting> setting_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kSettings; ++i) {
    if (kNames[i] == name) return static_cast<Setting>(i);
  }
  return std::nullopt;
}

std::string Settings::called(Setting setting) const { return std::string(to_string(setting)); }
std::string Settings::place(Setting setting) const { return "key " + called(setting); }
std::string Settings::kind(Setting setting) const {
  constexpr const char* kKinds[] = {"a boolean", "an integer", "an integer", "a number", "a string", "an array"};
  static_assert(std::size(kKinds) == std::variant_size_v<SettingValue>);
  const std::optional<SettingValue> value = find(setting);
  return value ? kKinds[value->index()] : "absent";
}
std::string Settings::origin() const { return {}; }
Status Settings::status() const noexcept { return {}; }

std::optional<std::string_view> Settings::chat_template(std::string_view name) const noexcept {
  const std::optional<SettingValue> value = name.empty() ? find(Setting::chat_template) : std::nullopt;
  return value ? get<std::string_view>(*value) : std::nullopt;
}

std::optional<FileKey> Settings::file_key(std::size_t) const noexcept { return std::nullopt; }
std::optional<SettingValue> Settings::find_key(std::string_view name) const noexcept {
  std::optional<FileKey> key;
  for (std::size_t i = 0; (key = file_key(i)); ++i) {
    if (key->name == name) return key->value;
  }
  return std::nullopt;
}

bool Settings::has_list(Setting setting) const noexcept {
  const std::optional<SettingValue> value = find(setting);
  return value && std::holds_alternative<ValueList>(*value);
}

Result<std::uint64_t> Settings::unsigned_integer(Setting setting) const noexcept {
  return read<std::uint64_t>(*this, setting, "an integer", [](const SettingValue& value) -> std::optional<std::uint64_t> {
    if (const auto number = get<std::int64_t>(value)) return *number < 0 ? std::nullopt : std::optional<std::uint64_t>(*number);
    return get<std::uint64_t>(value);
  });
}

Result<double> Settings::number(Setting setting) const noexcept {
  return read<double>(*this, setting, "a number", [](const SettingValue& value) -> std::optional<double> {
    if (const auto number = get<std::int64_t>(value)) return static_cast<double>(*number);
    if (const auto number = get<std::uint64_t>(value)) return static_cast<double>(*number);
    return get<double>(value);
  });
}

Result<bool> Settings::boolean(Setting setting) const noexcept { return read<bool>(*this, setting, "a boolean", get<bool>); }
Result<std::string_view> Settings::string(Setting setting) const noexcept {
  return read<std::string_view>(*this, setting, "a string", get<std::string_view>);
}
Result<ValueList> Settings::list(Setting setting) const noexcept {
  auto list = read<ValueList>(*this, setting, "an array", get<ValueList>);
  if (!list || list->is_whole()) return list;
  return guard([&]() -> Result<ValueList> {
    return error_of(*this, setting, ErrorCode::corrupt_file, fmt::format("is an array of {} elements that its {} bytes do not hold", list->size(), list->bytes().size()));
  });
}

Result<std::uint64_t> Settings::unsigned_integer_or(Setting setting, std::uint64_t absent) const noexcept {
  return has(setting) ? unsigned_integer(setting) : Result<std::uint64_t>(absent);
}
Result<double> Settings::number_or(Setting setting, double absent) const noexcept {
  return has(setting) ? number(setting) : Result<double>(absent);
}
Result<bool> Settings::boolean_or(Setting setting, bool absent) const noexcept {
  return has(setting) ? boolean(setting) : Result<bool>(absent);
}
Result<std::string_view> Settings::string_or(Setting setting, std::string_view absent) const noexcept {
  return has(setting) ? string(setting) : Result<std::string_view>(absent);
}

std::string_view to_string(ValueType type) noexcept {
  switch (type) {
    case ValueType::u8: return "u8";
    case ValueType::i8: return "i8";
    case ValueType::u16: return "u16";
    case ValueType::i16: return "i16";
    case ValueType::u32: return "u32";
    case ValueType::i32: return "i32";
    case ValueType::f32: return "f32";
    case ValueType::boolean: return "boolean";
    case ValueType::string: return "string";
    case ValueType::array: return "array";
    case ValueType::u64: return "u64";
    case ValueType::i64: return "i64";
    case ValueType::f64: return "f64";
  }
  return "?";
}

}  // namespace tessera
