// Reads EAGLE heads in all their kinds of files: folders of EAGLE-1 and -2 (Li et al. 2024) and of EAGLE-3 (Li et al. 2025), and
// llama.cpp's GGUF files of EAGLE-3. In a folder, the keys of config.json are translated to settings first, so that all other code is the
// same for folders and GGUF files.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "formats/formats.hpp"
#include "heads/readers.hpp"
#include "hub/tables/common.hpp"

namespace tessera::detail::heads {

namespace {

constexpr std::uint32_t kMostHeadDim = 4096;
constexpr std::uint64_t kMostWidth = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostGuessed = std::uint64_t{1} << 24;
constexpr auto kI64 = static_cast<DType>(27), kI32 = static_cast<DType>(26);  // ggml's numbers

constexpr TensorName kEagle[] = {
    {Role::mtp_in, "fc.weight", {}},
    {Role::eagle_in_bias, "fc.bias", {}, Presence::optional},
    {Role::attn_q, "layers.0.self_attn.q_proj.weight", {}},
    {Role::attn_q_bias, "layers.0.self_attn.q_proj.bias", {}, Presence::optional},
    {Role::attn_k, "layers.0.self_attn.k_proj.weight", {}},
    {Role::attn_k_bias, "layers.0.self_attn.k_proj.bias", {}, Presence::optional},
    {Role::attn_v, "layers.0.self_attn.v_proj.weight", {}},
    {Role::attn_v_bias, "layers.0.self_attn.v_proj.bias", {}, Presence::optional},
    {Role::attn_output, "layers.0.self_attn.o_proj.weight", {}},
    {Role::ffn_norm, "layers.0.post_attention_layernorm.weight", {}},
    {Role::ffn_gate, "layers.0.mlp.gate_proj.weight", {}},
    {Role::ffn_up, "layers.0.mlp.up_proj.weight", {}},
    {Role::ffn_down, "layers.0.mlp.down_proj.weight", {}},
};

constexpr TensorName kEagle3[] = {
    {Role::eagle_features, "fc.weight", "fc.weight"},
    {Role::mtp_token_norm, "layers.0.input_layernorm.weight", "blk.0.attn_norm.weight"},
    {Role::mtp_hidden_norm, "layers.0.hidden_norm.weight", "blk.0.attn_norm_2.weight"},
    {Role::eagle_q, "layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight"},
    {Role::eagle_k, "layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight"},
    {Role::eagle_v, "layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight"},
    {Role::attn_output, "layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight"},
    {Role::ffn_norm, "layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"},
    {Role::ffn_gate, "layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight"},
    {Role::ffn_up, "layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight"},
    {Role::ffn_down, "layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"},
    {Role::mtp_output_norm, "norm.weight", "output_norm.weight"},
    {Role::mtp_output, "lm_head.weight", "output.weight", Presence::optional},
    {Role::mtp_token_embd, "embed_tokens.weight", "token_embd.weight", Presence::optional},
};

// Tensors of a file that are not weights of the head. kKnown: tables (d2t: tokens that the head can guess), or tensors that no computation
// needs. kCopies: copies of the model's embeddings and output matrix in an EAGLE-1 file; they are ignored, because the head uses the
// model's own.
constexpr std::string_view kKnown[] = {"d2t", "d2t.weight", "t2d", "layers.0.self_attn.rotary_emb.inv_freq", "rope_freqs.weight", "blk.0.rope_freqs.weight"};
constexpr std::string_view kCopies[] = {"embed_tokens.weight", "lm_head.weight"};

// Returns a tensor's name without the differences between training programs: "model." at the beginning is removed, "midlayer." becomes
// "layers.0.".
std::string usual_name(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  constexpr std::string_view kMiddle = "midlayer.";
  return name.starts_with(kMiddle) ? "layers.0." + std::string(name.substr(kMiddle.size())) : std::string(name);
}

// Returns the tensor whose usual name is `name`; nullptr if there is none.
const TensorInfo* find_usual(const ModelSource& source, std::string_view name) {
  const auto tensors = source.tensors();
  const auto at = std::ranges::find_if(tensors, [&](const TensorInfo& tensor) { return usual_name(tensor.name) == name; });
  return at != tensors.end() ? &*at : nullptr;
}

// Adds to `file` the tensors that a kind of heads has (`names`). Errors: not_found, a tensor is missing; unsupported, the file has a tensor
// that this kind of heads does not have, or has a tensor twice.
Status take_tensors(std::span<const TensorName> names, std::string_view TensorName::*own_name, std::string_view kind, HeadFile& file) {
  for (const TensorName& name : names) {
    const TensorInfo* tensor = find_usual(*file.source, name.*own_name);
    if (tensor != nullptr) file.tensors.push_back({name.role, 0, std::string(tensor->name)});
    else if (name.presence == Presence::required) {
      return error_at(ErrorCode::not_found, file.place, "tensor {} is missing; {} heads need it", name.*own_name, kind);
    }
  }
  for (const TensorInfo& tensor : file.source->tensors()) {
    const std::string usual = usual_name(tensor.name);
    const auto is_named = [&](const TensorName& name) { return name.*own_name == usual; };
    const bool is_copy = file.spec.kind == DraftHeadKind::eagle && std::ranges::find(kCopies, usual) != std::end(kCopies);
    if (!is_copy && std::ranges::any_of(names, is_named) && find_usual(*file.source, usual) != &tensor) {
      return error_at(ErrorCode::unsupported, file.place, "tensors {} and {} are the same one of {} heads", find_usual(*file.source, usual)->name, printable(tensor.name), kind);
    }
    if (is_copy || std::ranges::any_of(names, is_named) || std::ranges::find(kKnown, usual) != std::end(kKnown)) continue;
    return error_at(ErrorCode::unsupported, file.place, "tensor {}: {} heads have no such tensor; leaving it out would change the head", printable(tensor.name), kind);
  }
  return {};
}

// Reads the tokens that the head can guess (tensor d2t), if they are not the whole vocabulary: output i of the head is token t(i) of the
// model. In a GGUF file, element i of d2t is t(i). In a folder it is t(i) - i (`are_differences`). Does nothing if the file has no such
// tensor.
Status read_guessed(bool are_differences, HeadFile& file) {
  const TensorInfo* table = find_usual(*file.source, "d2t");
  if (table == nullptr) table = find_usual(*file.source, "d2t.weight");
  if (table == nullptr) return {};
  const std::string place = fmt::format("{}: tensor {}", file.place, printable(table->name));
  const std::uint64_t n = table->dims[0], size = table->dtype == kI64 ? 8 : 4;
  if ((table->dtype != kI64 && table->dtype != kI32) || n == 0 || n > kMostGuessed || table->bytes < n * size || table->dims[1] != 1) {
    return error_at(ErrorCode::corrupt_file, place, "expected a list of 1 to {} integers, which are the tokens that the head guesses", kMostGuessed);
  }
  std::vector<std::byte> bytes(n * size);
  TESSERA_TRY_STATUS(file.source->read(*table, 0, bytes));
  const ValueList values(size == 8 ? ValueType::i64 : ValueType::i32, n, bytes);
  std::int64_t last = -1;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::int64_t token = values.integer(i);
    if (token < 0 || token > INT32_MAX) return error_at(ErrorCode::corrupt_file, place, "element {} is {}; expected a token", i, token);
    if (are_differences) token += static_cast<std::int64_t>(i);
    if (token <= last || token > INT32_MAX) {
      return error_at(ErrorCode::corrupt_file, place, "element {} stands for token {} behind token {}; the tokens must ascend", i, token, last);
    }
    file.guessed_tokens.push_back(static_cast<Token>(token));
    last = token;
  }
  const auto output = std::ranges::find(file.tensors, Role::mtp_output, &HeadTensor::role);
  if (output == file.tensors.end()) return error_at(ErrorCode::corrupt_file, place, "the head guesses some tokens, and has no output matrix of its own");
  const std::uint64_t rows = file.source->find_tensor(output->name)->dims[1];
  if (rows != n) return error_at(ErrorCode::corrupt_file, place, "it has {} tokens, and the output matrix {} rows", n, rows);
  return {};
}

// Reads a setting that is a count from 1 to `most`.
Result<std::uint32_t> count_of(const Settings& settings, Setting setting, std::uint64_t most, const std::string& place) {
  TESSERA_TRY(const std::uint64_t value, settings.unsigned_integer(setting));
  if (value >= 1 && value <= most) return static_cast<std::uint32_t>(value);
  return error_at(ErrorCode::corrupt_file, place, "{} is {}; expected 1 to {}", settings.called(setting), value, most);
}

Result<RopeSpec> read_rope_of_head(const Settings& settings, std::uint32_t dim, RopePairs pairs, const std::string& place) {
  RopeSpec rope{.pairs = pairs, .dim = dim};
  TESSERA_TRY(const std::uint64_t rotated, settings.unsigned_integer_or(Setting::rope_dim, dim));
  TESSERA_TRY(rope.theta, settings.number_or(Setting::rope_theta, 10000.0));
  TESSERA_TRY(const auto type, settings.string_or(Setting::rope_scaling, "none"));
  if (type == "linear") {
    TESSERA_TRY(rope.linear_factor, settings.number(Setting::rope_scaling_factor));
  }
  if (type != "none" && type != "linear") {
    return error_at(ErrorCode::unsupported, place, "rope scaling \"{}\" of a draft head is not implemented; linear and llama3 are", printable(type));
  }
  if (rotated != dim || dim % 2 != 0) {
    return error_at(ErrorCode::unsupported, place, "{} of {} elements of a head rotate; all of an even number must", rotated, dim);
  }
  const auto is_base = [](double value) { return value > 0.0 && std::isfinite(value); };
  if (!is_base(rope.theta) || !is_base(rope.linear_factor)) return error_at(ErrorCode::corrupt_file, place, "the rope's base or factor is not positive");
  return rope;
}

// Describes the head's layer by the settings.
Status read_layer(const Settings& settings, RopePairs pairs, HeadFile& file) {
  TESSERA_TRY(const std::uint32_t width, count_of(settings, Setting::d_model, kMostWidth, file.place));
  TESSERA_TRY(const std::uint32_t layers, count_of(settings, Setting::n_layers, 1024, file.place));
  if (layers != 1) return error_at(ErrorCode::unsupported, file.place, "{} layers in a draft head; 1 alone is implemented", layers);
  file.width = width;
  TESSERA_TRY(const std::uint64_t target, settings.unsigned_integer_or(Setting::target_width, width));
  if (target != width) {
    return error_at(ErrorCode::unsupported, file.place, "the head has {} numbers in a hidden state and its model {}; they must be equal", width, target);
  }
  LayerSpec layer;
  TESSERA_TRY(layer.n_heads, count_of(settings, Setting::n_heads, kMostHeadDim, file.place));
  layer.n_kv_heads = layer.n_heads;
  if (settings.has(Setting::n_kv_heads)) {
    TESSERA_TRY(layer.n_kv_heads, count_of(settings, Setting::n_kv_heads, layer.n_heads, file.place));
  }
  layer.key_dim = width / layer.n_heads;
  if (settings.has(Setting::key_dim)) {
    TESSERA_TRY(layer.key_dim, count_of(settings, Setting::key_dim, kMostHeadDim, file.place));
  }
  if (layer.n_heads % layer.n_kv_heads != 0 || layer.key_dim == 0 || layer.key_dim > kMostHeadDim) {
    return error_at(ErrorCode::corrupt_file, file.place, "{} query heads, {} KV heads and {} elements a head do not fit together", layer.n_heads, layer.n_kv_heads,
                    layer.key_dim);
  }
  layer.value_dim = layer.key_dim;
  layer.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layer.key_dim)));
  layer.rope = 0;
  TESSERA_TRY(layer.ffn_dim, count_of(settings, Setting::ffn_dim, kMostWidth, file.place));
  TESSERA_TRY(const double eps, settings.number(Setting::rms_norm_eps));
  if (!(eps >= 0.0 && eps < 1.0)) return error_at(ErrorCode::corrupt_file, file.place, "the norm's epsilon is {}; expected 0 to 1", eps);
  file.spec.norm_eps = static_cast<float>(eps);
  file.spec.layers = {layer};
  TESSERA_TRY(file.rope, read_rope_of_head(settings, layer.key_dim, pairs, file.place));
  return {};
}

// Reads the settings that only EAGLE-3 heads have.
Status read_eagle3(const Settings& settings, HeadFile& file) {
  TESSERA_TRY(const bool normed, settings.boolean_or(Setting::norm_before_residual, false));
  TESSERA_TRY(const bool before_fc, settings.boolean_or(Setting::norm_before_fc, false));
  if (before_fc) {
    return error_at(ErrorCode::unsupported, file.place, "{} is true; hidden states that are normed before fc are not implemented", settings.called(Setting::norm_before_fc));
  }
  file.spec.residual = normed ? HeadResidual::normed : HeadResidual::plain;
  const Setting key = settings.has(Setting::feature_layers) ? Setting::feature_layers : Setting::old_feature_layers;
  if (!settings.has(key)) return {};
  TESSERA_TRY(const ValueList list, settings.list(key));
  std::array<std::uint32_t, 3> features{};
  bool fits = list.is_integer() && list.size() == features.size();
  for (std::size_t i = 0; fits && i < features.size(); ++i) {
    const std::int64_t layer = list.integer(i);
    fits = layer >= 0 && layer <= UINT16_MAX && (i == 0 || layer > std::int64_t{features[i - 1]});
    features[i] = static_cast<std::uint32_t>(layer);
  }
  if (!fits) return error_at(ErrorCode::unsupported, file.place, "{} does not name three layers of the model, ascending", settings.called(key));
  file.features = features;
  return {};
}

// Copies the keys of config.json that only EAGLE-3 heads have.
void map_eagle3(hub::Mapping& m) {
  for (const auto& [setting, key] : {std::pair{Setting::norm_before_residual, "norm_before_residual"}, std::pair{Setting::norm_before_fc, "norm_before_fc"}}) {
    const Json* value = m.config.find_anywhere(key);
    if (value != nullptr && value->boolean() != nullptr) m.set(setting, *value->boolean(), key);
  }
  if (const auto width = m.integer_of(m.config.find_anywhere("target_hidden_size"), "target_hidden_size")) m.set(Setting::target_width, *width, "target_hidden_size");
  constexpr std::string_view kLayers = "eagle_aux_hidden_state_layer_ids";
  const Json* layers = m.config.find_anywhere(kLayers);
  // The setting lists the layers whose inputs the head reads. eagle_config (in SGLang's files) lists the layers whose outputs it reads. The
  // output of layer i is the input of layer i + 1, so 1 is added to each number of eagle_config.
  const bool are_outputs = layers == nullptr;
  if (are_outputs) layers = hub::find_in(m.config.find_anywhere("eagle_config"), kLayers);
  if (layers == nullptr || layers->elements() == nullptr) return;
  std::vector<std::int32_t> list;
  for (const float number : m.numbers_of(layers, kLayers)) list.push_back(number >= 0.0f && number < 65535.0f ? static_cast<std::int32_t>(number) + (are_outputs ? 1 : 0) : -1);
  m.set(Setting::feature_layers, std::move(list), kLayers);
}

}  // namespace

Status read_eagle_folder(const hub::Config& config, HeadFile& file) {
  const bool is_third = find_usual(*file.source, "layers.0.hidden_norm.weight") != nullptr;
  if (find_usual(*file.source, "fc.weight") == nullptr) {
    return error_at(ErrorCode::unsupported, file.place,
                    "the folder has no draft heads that tessera knows: Medusa heads have a tensor 0.0.linear.weight, and EAGLE heads fc.weight");
  }
  hub::HubSettings settings;
  hub::Mapping mapping(config, settings);
  hub::map_common(mapping);
  hub::map_rope(mapping);
  hub::expect_silu(mapping);
  if (is_third) map_eagle3(mapping);
  TESSERA_TRY_STATUS(mapping.status());
  file.spec.kind = is_third ? DraftHeadKind::eagle3 : DraftHeadKind::eagle;
  TESSERA_TRY_STATUS(is_third ? take_tensors(kEagle3, &TensorName::in_folder, "EAGLE-3", file) : take_tensors(kEagle, &TensorName::in_folder, "EAGLE", file));
  TESSERA_TRY_STATUS(read_layer(settings, RopePairs::halves, file));
  TESSERA_TRY(file.vocab_size, settings.unsigned_integer_or(Setting::vocab_size, 0));
  if (is_third) TESSERA_TRY_STATUS(read_eagle3(settings, file));
  if (is_third) TESSERA_TRY_STATUS(read_guessed(true, file));
  if (!mapping.rope_divisors.empty() && mapping.rope_divisors.size() != file.rope->dim / 2) {
    return error_at(ErrorCode::corrupt_file, file.place, "config.json: rope_scaling is for {} elements, and {} rotate", 2 * mapping.rope_divisors.size(), file.rope->dim);
  }
  file.rope_divisors = std::move(mapping.rope_divisors);
  return {};
}

Status read_eagle_gguf(HeadFile& file) {
  const Settings& settings = file.source->settings();
  TESSERA_TRY(const auto architecture, settings.string(Setting::architecture));
  if (architecture != "eagle3") {
    return error_at(ErrorCode::unsupported, file.place, "a file of architecture \"{}\" has no draft heads for another model; those of \"eagle3\" have", printable(architecture));
  }
  file.spec.kind = DraftHeadKind::eagle3;
  TESSERA_TRY_STATUS(take_tensors(kEagle3, &TensorName::in_gguf, "EAGLE-3", file));
  TESSERA_TRY_STATUS(read_layer(settings, RopePairs::interleaved, file));
  TESSERA_TRY_STATUS(read_eagle3(settings, file));
  TESSERA_TRY_STATUS(read_guessed(false, file));
  const TensorInfo* divisors = file.source->find_tensor("rope_freqs.weight");
  if (divisors == nullptr) divisors = file.source->find_tensor("blk.0.rope_freqs.weight");
  if (divisors == nullptr) return {};
  std::vector<float> values(file.rope->dim / 2);
  if (divisors->dtype != DType::f32 || divisors->dims[0] != values.size() || divisors->bytes != values.size() * sizeof(float)) {
    return error_at(ErrorCode::corrupt_file, file.place, "tensor {}: expected {} F32 numbers", printable(divisors->name), values.size());
  }
  TESSERA_TRY_STATUS(file.source->read(*divisors, 0, std::as_writable_bytes(std::span(values))));
  if (std::ranges::any_of(values, [](float value) { return !(value > 0.0f) || !std::isfinite(value); })) {
    return error_at(ErrorCode::corrupt_file, file.place, "tensor {}: expected positive numbers", printable(divisors->name));
  }
  file.rope_divisors = std::move(values);
  return {};
}

}  // namespace tessera::detail::heads
