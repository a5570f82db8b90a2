#include "hub/written/planned_folder.hpp"

#include <algorithm>

#include <tessera/extend/formats/rows.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/written/class_names.hpp"
#include "hub/written/filling.hpp"
#include "model/spec/spec_reader.hpp"
#include "model/spec/spec_text.hpp"

namespace tessera::detail::hub {

namespace {

// The model with the settings that follow from the written config.json. Its spec is compared with the model's own spec.
class ReadAgain final : public ModelSource {
 public:
  ReadAgain(const ModelSource& model, HubSettings settings, const Mapping& mapping) : model_(model), settings_(std::move(settings)) {
    for (const TensorInfo& tensor : model.tensors()) {
      if (tensor.name == row_of(Role::rope_freqs).name && mapping.rope_divisors.size() != tensor.dims[0]) continue;
      if (tensor.name == row_of(Role::rope_factors_short).name && mapping.short_factors.size() != tensor.dims[0]) continue;
      if (tensor.name == row_of(Role::rope_factors_long).name && mapping.long_factors.size() != tensor.dims[0]) continue;
      tensors_.push_back(tensor);
    }
  }
  [[nodiscard]] const Settings& settings() const noexcept override { return settings_; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return tensors_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override {
    const auto at = std::ranges::find(tensors_, name, &TensorInfo::name);
    return at == tensors_.end() ? nullptr : &*at;
  }
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    return model_.read(*model_.find_tensor(tensor.name), offset, out);
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::size_t lost() const noexcept { return model_.tensors().size() - tensors_.size(); }

 private:
  const ModelSource& model_;
  HubSettings settings_;
  std::vector<TensorInfo> tensors_;
};

// Returns the first line that differs between `wanted` and `got`, in both texts.
std::string difference(std::string_view wanted, std::string_view got) {
  while (!wanted.empty()) {
    const std::string_view line = wanted.substr(0, wanted.find('\n')), other = got.substr(0, got.find('\n'));
    if (line != other) return fmt::format("\"{}\" would become \"{}\"", printable(line), printable(other));
    wanted.remove_prefix(std::min(line.size() + 1, wanted.size()));
    got.remove_prefix(std::min(other.size() + 1, got.size()));
  }
  return "nothing";
}

// Returns the architecture whose types of folders are used for `architecture`: another one if `architecture` is a variant of it.
std::string_view folders_of(std::string_view architecture) noexcept {
  if (architecture == "nemotron_h_moe") return "nemotron_h";
  if (architecture == "gemma-embedding") return "gemma3";
  return architecture;
}

// Adds keys that say which tensors a layer has. tessera does not read them (it sees the tensors), but transformers' classes need them.
void add_class_keys(const Filling& f, const ModelSource& model, Json& config) {
  const auto set = [&](std::string_view key, Json value) {
    if (config.find(key) == nullptr) config.set(key, std::move(value));
  };
  set("attention_bias", f.has_in_any_layer(Role::attn_q_bias) || f.has_in_any_layer(Role::attn_qkv_bias));
  set("attention_out_bias", f.has_in_any_layer(Role::attn_output_bias));
  set("mlp_bias", f.has_in_any_layer(Role::ffn_up_bias));
  set("use_qk_norm", f.has_in_any_layer(Role::attn_q_norm));
  set("use_qkv_bias", f.has_in_any_layer(Role::attn_q_bias));
  set("use_bias", f.has_in_any_layer(Role::ffn_up_bias));
  // rope_parameters has all numbers. A rope_scaling of null is removed, because some classes would use even a null instead.
  if (config.find("rope_parameters") != nullptr) {
    std::erase_if(*config.members(), [](const Json::Member& member) { return member.first == "rope_scaling" && member.second.is_null(); });
  }
  set("tie_word_embeddings", model.find_tensor(row_of(Role::output).tensor_name()) == nullptr);
}

class FolderPlanner {
 public:
  FolderPlanner(const ModelSource& model, const FolderOptions& options) : model_(model), options_(options) {}

  Result<PlannedFolder> run() {
    TESSERA_TRY(architecture_, find_architecture(model_.settings()));
    TESSERA_TRY(spec_, read_spec(model_, *architecture_, {}));
    wanted_ = spec_text(spec_);
    Status problem = error_at(ErrorCode::unsupported, model_.settings().origin(), "tessera reads no folders of models of the architecture \"{}\", so it writes none", spec_.architecture);
    bool is_first = true;
    for (const Table* table : tables_of(folders_of(spec_.architecture))) {
      for (const Digits digits : {Digits::shortest, Digits::all}) {
        Status status = try_type(*table, digits);
        if (status) return finish(*table);
        if (status.error().code() != ErrorCode::unsupported && status.error().code() != ErrorCode::corrupt_file) return std::move(status).error();
        if (is_first) problem = std::move(status);
      }
      is_first = false;
    }
    return std::move(problem).error();
  }

 private:
  // Fills in the config.json of a type and reads it again.
  Status try_type(const Table& table, Digits digits) {
    Config config;
    config.whole().set("architectures", Json::array());
    config.whole().set("model_type", table.model_type);
    HubSettings settings;
    settings.set(Setting::architecture, std::string(table.architecture), "model_type");
    Mapping mapping(config, settings);
    Filling filling(config, model_, *architecture_, spec_, digits);
    mapping.filling = &filling;
    table.map(mapping);
    TESSERA_TRY_STATUS(mapping.status());
    const std::uint64_t further = model_.settings().unsigned_integer_or(Setting::n_further_layers, 0).value_or(0);
    n_further_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(further, spec_.n_left_out));
    settings.remove(Setting::n_further_layers);
    if (n_further_ != 0) {
      settings.set(Setting::n_layers, std::int64_t{spec_.n_layers()} + n_further_, "num_hidden_layers");
      settings.set(Setting::n_further_layers, std::int64_t{n_further_}, "num_nextn_predict_layers");
    }
    add_class_keys(filling, model_, config.whole());
    if (table.can_be_tied || model_.find_tensor(row_of(Role::output).tensor_name()) != nullptr) {
      TESSERA_TRY_STATUS(compare(table, std::move(settings), mapping));
    } else {
      return error_at(ErrorCode::unsupported, fmt::format("a folder of type \"{}\"", table.model_type), "it needs an output matrix of its own, and the model shares the embeddings'");
    }
    TESSERA_TRY(tensors_, written_tensors(model_, table, spec_.n_layers(), n_further_));
    config_ = std::move(config.whole());
    return {};
  }

  Status compare(const Table& table, HubSettings settings, const Mapping& mapping) const {
    const ReadAgain again(model_, std::move(settings), mapping);
    if (again.lost() != 0) {
      return error_at(ErrorCode::unsupported, fmt::format("a folder of type \"{}\"", table.model_type),
                      "its config.json cannot say the factors of the rope's frequencies (rope_freqs.weight, rope_factors_*.weight)");
    }
    TESSERA_TRY(const Architecture* const architecture, find_architecture(again.settings()));
    TESSERA_TRY(const ModelSpec spec, read_spec(again, *architecture, {}));
    const std::string text = spec_text(spec);
    if (text == wanted_) return {};
    return error_at(ErrorCode::unsupported, fmt::format("a folder of type \"{}\"", table.model_type), "its config.json cannot say all settings of the model: {}",
                    difference(wanted_, text));
  }

  Result<PlannedFolder> finish(const Table& table) {
    PlannedFolder folder{.table = &table, .config = std::move(config_), .texts = {}, .tensors = std::move(tensors_)};
    const DType main = options_.type.value_or(main_type());
    TESSERA_TRY_STATUS(choose_types(model_, main, options_.type.has_value(), options_.stop, folder.tensors));
    folder.config.set("torch_dtype", main == DType::f32 ? "float32" : main == DType::f16 ? "float16" : "bfloat16");
    std::string class_name(class_of(table.model_type));
    const bool has_scores = model_.find_tensor(row_of(Role::head_out).tensor_name()) != nullptr;
    if (has_scores && class_name.ends_with("Model")) class_name.replace(class_name.size() - 5, 5, "ForSequenceClassification");
    if (!class_name.empty()) folder.config.set("architectures", Json(Json::Array{Json(class_name)}));
    TESSERA_TRY(folder.texts, text_files(model_.settings(), folder.config, options_.stop));
    return folder;
  }

  // Returns the type that most of the matrices' numbers have; BF16 if most are quantised.
  [[nodiscard]] DType main_type() const {
    std::uint64_t f32 = 0, f16 = 0, others = 0;
    for (const TensorInfo& tensor : model_.tensors()) {
      if (tensor.n_dims < 2) continue;
      const std::uint64_t values = tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
      (tensor.dtype == DType::f32 ? f32 : tensor.dtype == DType::f16 ? f16 : others) += values;
    }
    return f32 >= f16 && f32 >= others ? DType::f32 : f16 >= others ? DType::f16 : DType::bf16;
  }

  const ModelSource& model_;
  const FolderOptions& options_;
  const Architecture* architecture_ = nullptr;
  ModelSpec spec_;
  std::string wanted_;  // the spec as text
  std::uint32_t n_further_ = 0;
  Json config_;
  std::vector<WrittenTensor> tensors_;
};

}  // namespace

Result<PlannedFolder> planned_folder(const ModelSource& model, const FolderOptions& options) {
  if (options.type && !has_single_numbers(*options.type)) {
    return error_at(ErrorCode::invalid_argument, "type", "{} is not a type of safetensors files that hubs publish for all models: choose F32, F16 or BF16", to_string(*options.type));
  }
  return FolderPlanner(model, options).run();
}

}  // namespace tessera::detail::hub
