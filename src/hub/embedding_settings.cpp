#include "hub/embedding_settings.hpp"

#include <string>

#include "core/printable.hpp"
#include "os/file.hpp"

namespace tessera::detail::hub {

namespace {

// The values of Setting::pooling, which are GGUF's numbers.
enum class PoolingNumber : std::int64_t { none = 0, mean = 1, cls = 2, last = 3, rank = 4 };

struct PoolingRow {
  std::string_view flag;  // a boolean, in the file of older versions
  std::string_view name;  // pooling_mode, in the file of newer versions
  PoolingNumber number;
};
constexpr PoolingRow kPoolings[] = {
    {"pooling_mode_mean_tokens", "mean", PoolingNumber::mean},
    {"pooling_mode_cls_token", "cls", PoolingNumber::cls},
    {"pooling_mode_lasttoken", "lasttoken", PoolingNumber::last},
};
constexpr std::string_view kOtherPoolings[] = {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"};

bool is_true(const Json& object, std::string_view key) {
  const Json* value = find_in(&object, key);
  return value != nullptr && value->boolean() != nullptr && *value->boolean();
}

Status read_pooling(const std::filesystem::path& folder, const std::string& module, Mapping& to) {
  const std::string file = module + "/config.json";
  TESSERA_TRY(const Json config, read_object(folder, file));
  const auto refuse = [&](std::string_view what) {
    return error_at(ErrorCode::unsupported, file, "{}: tessera pools by mean, by the first or by the last token", printable(what));
  };
  const PoolingRow* found = nullptr;
  for (const std::string_view other : kOtherPoolings) {
    if (is_true(config, other)) return refuse(other);
  }
  const Json* mode = find_in(&config, "pooling_mode");
  const std::string* name = mode != nullptr ? mode->string() : nullptr;
  for (const PoolingRow& row : kPoolings) {
    if (!is_true(config, row.flag) && (name == nullptr || *name != row.name)) continue;
    if (found != nullptr) return refuse("several poolings");
    found = &row;
  }
  if (found == nullptr) return refuse(name != nullptr ? *name : "no pooling");
  const Json* prompt = find_in(&config, "include_prompt");
  if (prompt != nullptr && prompt->boolean() != nullptr && !*prompt->boolean()) return refuse("a prompt that is not pooled (include_prompt)");
  to.set(Setting::pooling, static_cast<std::int64_t>(found->number), file);
  return {};
}

void read_prompts(const Json& config, Mapping& to) {
  const Json* prompts = find_in(&config, "prompts");
  const auto set = [&](Setting setting, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const Json* text = find_in(prompts, name);
      if (text == nullptr || text->string() == nullptr) continue;
      to.set(setting, *text->string(), fmt::format("config_sentence_transformers.json: prompts.{}", name));
      return;
    }
  };
  set(Setting::query_prompt, {"query"});
  set(Setting::document_prompt, {"document", "passage"});
}

// A module of modules.json.
struct Module {
  std::string type, path;  // "Pooling", "1_Pooling"
};

Result<std::vector<Module>> read_modules(const std::filesystem::path& folder) {
  TESSERA_TRY(const Json modules, read_list(folder, "modules.json"));
  std::vector<Module> found;
  if (modules.elements() == nullptr) return found;
  for (const Json& module : *modules.elements()) {
    const Json *type = find_in(&module, "type"), *path = find_in(&module, "path");
    if (type == nullptr || type->string() == nullptr || path == nullptr || path->string() == nullptr) {
      return error_at(ErrorCode::corrupt_file, "modules.json", "a module has no type or no path");
    }
    const std::string_view whole = *type->string();
    if (!whole.starts_with("sentence_transformers.")) return error_at(ErrorCode::unsupported, "modules.json", "the module \"{}\" belongs to another package", printable(whole));
    if (path->string()->find('/') != std::string::npos || path->string()->find('\\') != std::string::npos || *path->string() == "..") {
      return error_at(ErrorCode::corrupt_file, "modules.json", "the path \"{}\" of a module is no name of a folder", printable(*path->string()));
    }
    found.push_back({std::string(whole.substr(whole.rfind('.') + 1)), *path->string()});
  }
  return found;
}

// Refuses a Dense module with a bias or an activation.
Status check_dense(const std::filesystem::path& folder, const std::string& module) {
  const std::string file = module + "/config.json";
  TESSERA_TRY(const Json config, read_object(folder, file));
  if (is_true(config, "bias")) return error_at(ErrorCode::unsupported, file, "bias: tessera has products without a bias behind the model");
  const Json* activation = find_in(&config, "activation_function");
  const std::string name = activation != nullptr && activation->string() != nullptr ? *activation->string() : "torch.nn.modules.activation.Tanh";
  if (name.ends_with(".Identity")) return {};
  return error_at(ErrorCode::unsupported, file, "activation_function: \"{}\"; tessera has products without an activation behind the model", printable(name));
}

// Returns whether the model's class has a head that ranks or classifies.
bool has_scores(const Config& config) {
  const Json* classes = find_in(&config.whole(), "architectures");
  if (classes == nullptr || classes->elements() == nullptr) return false;
  for (const Json& name : *classes->elements()) {
    if (name.string() != nullptr && name.string()->ends_with("ForSequenceClassification")) return true;
  }
  return false;
}

}  // namespace

Status read_embedding_settings(const std::filesystem::path& folder, const Config& config, Mapping& to) {
  to.has_scores = has_scores(config);
  const auto classified = to.text("classifier_pooling");
  if (to.has_scores && classified && *classified != "cls") {
    return error_at(ErrorCode::unsupported, "config.json: classifier_pooling", "the head reads the {} of a text's rows; tessera has heads that read the first row", printable(*classified));
  }
  if (to.has_scores) to.set(Setting::pooling, static_cast<std::int64_t>(PoolingNumber::rank), "architectures");
  TESSERA_TRY(const std::vector<Module> modules, read_modules(folder));
  if (modules.empty()) return {};
  for (const Module& module : modules) {
    if (module.type == "Pooling") TESSERA_TRY_STATUS(read_pooling(folder, module.path, to));
    else if (module.type != "Transformer" && module.type != "Normalize" && module.type != "Dense") {
      return error_at(ErrorCode::unsupported, "modules.json", "a module of type \"{}\"; tessera has Transformer, Pooling, Dense and Normalize", printable(module.type));
    }
  }
  TESSERA_TRY(const Json sentence, read_object(folder, "sentence_bert_config.json"));
  const Json* most = find_in(&sentence, "max_seq_length");
  if (most != nullptr && most->integer() != nullptr && *most->integer() > 0) {
    to.set(Setting::text_tokens, *most->integer(), "sentence_bert_config.json: max_seq_length");
  }
  const Json* lower = config.in_tokenizer("do_lower_case");
  const bool tokenizer_lowers = lower != nullptr && lower->boolean() != nullptr && *lower->boolean();
  if (is_true(sentence, "do_lower_case") && !tokenizer_lowers) {
    return error_at(ErrorCode::unsupported, "sentence_bert_config.json: do_lower_case", "texts are to become lower case before the tokenizer gets them, which tessera does not support");
  }
  TESSERA_TRY(const Json prompts, read_object(folder, "config_sentence_transformers.json"));
  if (find_in(&prompts, "default_prompt_name") != nullptr) {
    return error_at(ErrorCode::unsupported, "config_sentence_transformers.json: default_prompt_name", "a prompt for every text; tessera puts prompts in front only where it is asked to");
  }
  read_prompts(prompts, to);
  return {};
}

Result<std::vector<SafetensorsFolder::Module>> read_dense_modules(const std::filesystem::path& folder) {
  TESSERA_TRY(const std::vector<Module> modules, read_modules(folder));
  std::vector<SafetensorsFolder::Module> dense;
  for (const Module& module : modules) {
    if (module.type != "Dense") continue;
    TESSERA_TRY_STATUS(check_dense(folder, module.path));
    dense.push_back({folder / os::path_of(module.path), fmt::format("dense.{}.", dense.size())});
  }
  if (dense.empty() || dense.size() == 2) return dense;
  return error_at(ErrorCode::unsupported, "modules.json", "{} modules of type Dense; tessera has models with two or none", dense.size());
}

}  // namespace tessera::detail::hub
