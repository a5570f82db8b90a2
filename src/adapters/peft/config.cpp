#include "adapters/peft/config.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <tessera/json/json.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/config.hpp"
#include "os/file.hpp"

namespace tessera::detail::adapters {

namespace {

constexpr std::string_view kConfigFile = "adapter_config.json";
constexpr std::size_t kMostPatternKeys = 2048, kMostPatternBytes = 1024;
constexpr std::size_t kMostPatternSteps = 1'000'000;  // limit for the number of matches, of all modules with all keys
constexpr std::uint32_t kMostMatchSteps = 20'000;     // limit for the steps of one match
constexpr std::size_t kMostInvocation = 4096;

// Keys of adapter_config.json that are ignored: they do not change results, or only repeat what other keys or the tensors say.
constexpr std::string_view kHarmless[] = {"auto_mapping",
                                          "base_model_name_or_path",
                                          "peft_version",
                                          "revision",
                                          "task_type",
                                          "inference_mode",
                                          "megatron_core",
                                          "corda_config",
                                          "eva_config",
                                          "lora_ga_config",
                                          "loftq_config",
                                          "qalora_group_size",
                                          "ensure_weight_tying",
                                          "runtime_config",
                                          "fan_in_fan_out",
                                          "lora_dropout",
                                          "target_modules",
                                          "exclude_modules",
                                          "layers_to_transform",
                                          "layers_pattern",
                                          "init_lora_weights",
                                          "peft_type",
                                          "r",
                                          "lora_alpha",
                                          "rank_pattern",
                                          "alpha_pattern",
                                          "use_rslora",
                                          "use_dora",
                                          "alora_invocation_tokens",
                                          "target_parameters",
                                          "bias",
                                          "arrow_expert_num"};

// Ways to initialise A and B that leave the model's own weights as they are, so that the adapter can be used with the model's file. Other
// ways (PiSSA, OLoRA, CorDA, LoftQ, ...) subtract a part of the model's weights first, and their adapters fit only these changed weights.
// PEFT writes `true` into the key after it has converted one of these adapters to the model's own weights.
constexpr std::string_view kHarmlessStarts[] = {"gaussian", "eva", "orthogonal", "true", "false"};

// Returns whether a value is null, false, 0, or an empty text, list or object.
bool stands_for_nothing(const Json& value) noexcept {
  if (value.is_null()) return true;
  if (const bool* flag = value.boolean()) return !*flag;
  if (const std::int64_t* whole = value.integer()) return *whole == 0;
  if (const double* number = value.number()) return *number == 0.0;
  if (const std::string* text = value.string()) return text->empty();
  if (value.elements() != nullptr) return value.elements()->empty();
  return value.members() != nullptr && value.members()->empty();
}

// Reads the values of one file, and remembers its place for errors.
class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  [[nodiscard]] const std::string& place() const noexcept { return place_; }

  template <class... Args>
  [[nodiscard]] Error error(ErrorCode code, std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    return error_at(code, fmt::format("{}: {}", place_, printable(key)), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] Result<bool> flag(std::string_view key) const {
    const Json* value = hub::find_in(&json_, key);
    if (value == nullptr) return false;
    if (value->boolean() == nullptr) return error(ErrorCode::corrupt_file, key, "expected true or false");
    return *value->boolean();
  }

  [[nodiscard]] Result<double> number(const Json& value, std::string_view key) const {
    const double found = value.integer() != nullptr  ? static_cast<double>(*value.integer())
                         : value.number() != nullptr ? *value.number()
                                                     : std::numeric_limits<double>::quiet_NaN();
    if (!std::isfinite(found)) return error(ErrorCode::corrupt_file, key, "expected a number");
    return found;
  }

  [[nodiscard]] Status pattern(std::string_view key, Pattern& out) const {
    const Json* value = hub::find_in(&json_, key);
    if (value == nullptr) return {};
    if (value->members() == nullptr) return error(ErrorCode::corrupt_file, key, "expected an object of names of modules and numbers");
    if (value->members()->size() > kMostPatternKeys) {
      return error(ErrorCode::unsupported, key, "it has {} names; expected at most {}", value->members()->size(), kMostPatternKeys);
    }
    for (const auto& [name, own] : *value->members()) {
      TESSERA_TRY(const double found, number(own, key));
      TESSERA_TRY_STATUS(out.add(name, found, fmt::format("{}: {}", place_, key)));
    }
    return {};
  }

  [[nodiscard]] Result<std::vector<Token>> tokens(std::string_view key) const {
    std::vector<Token> found;
    const Json* value = hub::find_in(&json_, key);
    if (value == nullptr) return found;
    if (value->elements() == nullptr || value->elements()->size() > kMostInvocation) {
      return error(ErrorCode::corrupt_file, key, "expected a list of at most {} token ids", kMostInvocation);
    }
    for (const Json& element : *value->elements()) {
      const std::int64_t* token = element.integer();
      if (token == nullptr || *token < 0 || *token > std::numeric_limits<Token>::max()) {
        return error(ErrorCode::corrupt_file, key, "expected a list of token ids");
      }
      found.push_back(static_cast<Token>(*token));
    }
    return found;
  }

  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const {
    std::vector<std::string> found;
    const Json* value = hub::find_in(&json_, key);
    if (value == nullptr) return found;
    if (value->elements() == nullptr) return error(ErrorCode::corrupt_file, key, "expected a list of names");
    for (const Json& element : *value->elements()) {
      if (element.string() == nullptr) return error(ErrorCode::corrupt_file, key, "expected a list of names");
      found.push_back(*element.string());
    }
    return found;
  }

  // Refuses kinds of adapters that tessera does not compute, and unknown keys whose value may change results.
  [[nodiscard]] Status refuse_others() const {
    const Json* kind = hub::find_in(&json_, "peft_type");
    if (kind == nullptr || kind->string() == nullptr) {
      return error(ErrorCode::corrupt_file, "peft_type", "expected \"LORA\": the file is no configuration of an adapter");
    }
    if (*kind->string() != "LORA") {
      return error(ErrorCode::unsupported, "peft_type", "the kind is \"{}\"; tessera reads \"LORA\"", printable(*kind->string()));
    }
    const Json* start = hub::find_in(&json_, "init_lora_weights");
    if (start != nullptr && start->string() != nullptr) {
      const std::string& way = *start->string();
      if (std::ranges::none_of(kHarmlessStarts, [&](std::string_view known) { return way == known; })) {
        return error(
            ErrorCode::unsupported, "init_lora_weights",
            "the value is \"{}\": the adapter belongs to a model whose weights PEFT changed at the beginning of the training; save it again with "
            "save_pretrained(path_initial_model_for_weight_conversion=...)",
            printable(way));
      }
    }
    const Json* biases = hub::find_in(&json_, "bias");
    if (biases != nullptr && (biases->string() == nullptr || *biases->string() != "none")) {
      return error(ErrorCode::unsupported, "bias", "the value is {}: trained biases are not implemented; train with bias = \"none\"",
                   printable(biases->dump()));
    }
    for (const auto& [key, value] : *json_.members()) {
      if (stands_for_nothing(value) || std::ranges::find(kHarmless, std::string_view(key)) != std::end(kHarmless)) continue;
      if (key == "modules_to_save") {
        return error(
            ErrorCode::unsupported, key,
            "the value is {}: modules that were trained as a whole are not implemented; train LoRA matrices for them, or merge the adapter with PEFT",
            printable(value.dump()));
      }
      return error(ErrorCode::unsupported, key, "the value is {}, which tessera does not implement", printable(value.dump()));
    }
    return {};
  }

 private:
  const Json& json_;
  std::string place_;
};

}  // namespace

Status Pattern::add(std::string_view key, double number, std::string_view place) {
  if (key.size() > kMostPatternBytes) {
    return error_at(ErrorCode::unsupported, place, "the name {} is longer than {} bytes", printable(key), kMostPatternBytes);
  }
  int error = 0;
  const std::string whole = fmt::format("\\A(?:.*\\.)?(?:{})\\z", key);
  Pcre2Code code = compile_pcre2(whole, PCRE2_UTF | PCRE2_DOTALL, nullptr, error);
  if (code == nullptr) {
    if (is_pcre2_memory_error(error)) return out_of_memory_error();
    return error_at(ErrorCode::corrupt_file, place, "{} is no regular expression: {}", printable(key), pcre2_message(error));
  }
  rows_.push_back({std::move(code), number});
  return {};
}

Result<double> Pattern::number_of(std::string_view module, double usual) {
  if (rows_.empty()) return usual;
  const Pcre2MatchData data(pcre2_match_data_create(1, nullptr));
  const Pcre2MatchContext context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) return out_of_memory_error();
  (void)pcre2_set_match_limit(context.get(), kMostMatchSteps);
  for (const Row& row : rows_) {
    if (++steps_ > kMostPatternSteps) {
      return make_error(ErrorCode::unsupported, "rank_pattern and alpha_pattern have too many names for {} modules", printable(module));
    }
    const int found = pcre2_match(row.code.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0, data.get(), context.get());
    if (found >= 0) return row.number;
    if (found == PCRE2_ERROR_NOMATCH) continue;
    if (is_pcre2_memory_error(found) || found == PCRE2_ERROR_HEAPLIMIT) return out_of_memory_error();
    return make_error(ErrorCode::corrupt_file, "a name in rank_pattern or alpha_pattern cannot be matched with {}: {}", printable(module), pcre2_message(found));
  }
  return usual;
}

Result<PeftConfig> PeftConfig::read(const std::filesystem::path& folder) {
  TESSERA_TRY(const Json json, hub::read_object(folder, kConfigFile));
  const std::string place = os::text_of(folder / kConfigFile);
  if (json.is_null()) return error_at(ErrorCode::not_found, place, "there is no such file: a PEFT adapter has it beside adapter_model.safetensors");
  const ConfigReader reader(json, place);
  TESSERA_TRY_STATUS(reader.refuse_others());
  PeftConfig config;
  if (const Json* base = hub::find_in(&json, "base_model_name_or_path"); base != nullptr && base->string() != nullptr) config.base = *base->string();
  if (const Json* alpha = hub::find_in(&json, "lora_alpha")) {
    TESSERA_TRY(config.alpha, reader.number(*alpha, "lora_alpha"));
  }
  TESSERA_TRY_STATUS(reader.pattern("alpha_pattern", config.alphas));
  if (const Json* rank = hub::find_in(&json, "r")) {
    TESSERA_TRY(config.usual_rank, reader.number(*rank, "r"));
    if (config.usual_rank < 1.0) return reader.error(ErrorCode::corrupt_file, "r", "the rank is {}; expected at least 1", config.usual_rank);
  }
  // The tensors state the ranks too, so a rank_pattern that cannot be matched only leaves the comparison out.
  if (const Status ranks = reader.pattern("rank_pattern", config.ranks); !ranks) {
    if (ranks.error().code() == ErrorCode::out_of_memory) return ranks.error();
    config.usual_rank = 0.0;
    config.ranks = {};
  }
  TESSERA_TRY(config.is_rank_stabilised, reader.flag("use_rslora"));
  TESSERA_TRY(config.has_lengths, reader.flag("use_dora"));
  TESSERA_TRY(config.invocation, reader.tokens("alora_invocation_tokens"));
  TESSERA_TRY(config.parameters, reader.texts("target_parameters"));
  if (config.has_lengths && !config.invocation.empty()) {
    return reader.error(ErrorCode::unsupported, "use_dora", "DoRA and alora_invocation_tokens together are not implemented");
  }
  return config;
}

Result<float> PeftConfig::scale_of(std::string_view module, std::uint64_t rank) {
  const auto stated = ranks.number_of(module, usual_rank > 0.0 ? usual_rank : static_cast<double>(rank));
  if (!stated && stated.error().code() == ErrorCode::out_of_memory) return stated.error();
  if (stated && *stated != static_cast<double>(rank)) {
    return make_error(ErrorCode::corrupt_file,
                      "{}: the matrices have rank {}, but adapter_config.json states {} (r, or the first key of rank_pattern that matches): correct the file, or download both files again",
                      printable(module, 160), rank, *stated);
  }
  TESSERA_TRY(const double own, alphas.number_of(module, alpha));
  return static_cast<float>(own / (is_rank_stabilised ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank)));
}

}  // namespace tessera::detail::adapters
