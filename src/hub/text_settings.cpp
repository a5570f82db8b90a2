#include "hub/text_settings.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "text/rules/old_files.hpp"
#include "text/rules/tekken.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::uint64_t kMostTokenizer = std::uint64_t{256} << 20;  // limit for a tokenizer's file: ten times real models
constexpr std::uint64_t kMostTemplate = std::uint64_t{4} << 20;
constexpr std::size_t kMostTemplateValues = 10'000;  // limit for the values in chat_template.json, which needs one

// Returns the text of a special token, which is a string or an object with the key "content".
const std::string* text_of_token(const Json* token) {
  const Json* content = find_in(token, "content");
  if (content != nullptr) return content->string();
  return token == nullptr ? nullptr : token->string();
}

// Returns the id of the added token with this text, from the list in tokenizer_config.json.
std::optional<std::int64_t> added_id(const Config& config, std::string_view text) {
  const Json* added = config.in_tokenizer("added_tokens_decoder");
  if (added == nullptr || added->members() == nullptr) return std::nullopt;
  for (const auto& [key, token] : *added->members()) {
    const std::string* own = text_of_token(&token);
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (own != nullptr && *own == text && error == std::errc() && end == key.data() + key.size()) return id;
  }
  return std::nullopt;
}

// Returns the ids under a key that has one id or a list.
std::vector<std::int32_t> ids_of(const Json* value) {
  std::vector<std::int32_t> ids;
  const auto add = [&](const Json& one) {
    if (one.integer() != nullptr && *one.integer() >= 0 && *one.integer() <= 0x7FFFFFFF) ids.push_back(static_cast<std::int32_t>(*one.integer()));
  };
  if (value == nullptr) return ids;
  if (value->elements() == nullptr) add(*value);
  else std::ranges::for_each(*value->elements(), add);
  return ids;
}

// Sets the setting of one special token, such as BOS. If tokenizer_config.json names the token and also has its id, takes this id.
// Otherwise takes the id in generation_config.json, or else the one in config.json.
void set_token(Mapping& to, Setting setting, std::string_view name, std::string_view id_key) {
  const std::string* text = text_of_token(to.config.in_tokenizer(name));
  if (text != nullptr) {
    if (const auto id = added_id(to.config, *text)) return to.set(setting, *id, fmt::format("tokenizer_config.json: {}", name));
  }
  // If there is a tokenizer_config.json and it does not name the token, the tokenizer has no such token, whatever config.json says.
  // Exception: the token that ends a text, which each model needs.
  if (text == nullptr && to.config.has_tokenizer_config() && setting != Setting::eos_token) return;
  const auto in_generation = ids_of(to.config.in_generation(id_key)), in_config = ids_of(to.config.find_anywhere(id_key));
  const auto& ids = in_generation.empty() ? in_config : in_generation;
  if (!ids.empty()) to.set(setting, std::int64_t{ids.front()}, id_key);
}

Status read_templates(const std::filesystem::path& folder, const Config& config, Mapping& to) {
  TESSERA_TRY(std::string text, read_text(folder, "chat_template.jinja", kMostTemplate));
  if (!text.empty()) {
    to.set(Setting::chat_template, std::move(text), "chat_template.jinja");
    return {};
  }
  TESSERA_TRY(const std::string object, read_text(folder, "chat_template.json", kMostTemplate));
  if (!object.empty()) {
    if (const auto json = Json::parse(object, {.most_values = kMostTemplateValues})) {
      const Json* own = find_in(&*json, "chat_template");
      if (own != nullptr && own->string() != nullptr) to.set(Setting::chat_template, *own->string(), "chat_template.json");
    }
    if (to.settings.has(Setting::chat_template)) return {};
  }
  const Json* value = config.in_tokenizer("chat_template");
  if (value == nullptr) return {};
  if (value->string() != nullptr) {
    to.set(Setting::chat_template, *value->string(), "tokenizer_config.json: chat_template");
  } else if (value->elements() != nullptr) {  // several templates, each with a name
    for (const Json& one : *value->elements()) {
      const Json *name = find_in(&one, "name"), *own = find_in(&one, "template");
      if (name == nullptr || own == nullptr || name->string() == nullptr || own->string() == nullptr) continue;
      if (*name->string() == "default") to.set(Setting::chat_template, *own->string(), "tokenizer_config.json: chat_template");
      else to.settings.add_template(*name->string(), *own->string());
    }
  }
  return {};
}

// Reads the tokenizer files of folders from the time before tokenizer.json: GPT-2's vocab.json and merges.txt, BERT's vocab.txt.
Status read_old_files(const std::filesystem::path& folder, const Config& config, Mapping& to) {
  TESSERA_TRY(const std::string vocabulary, read_text(folder, "vocab.json", kMostTokenizer));
  TESSERA_TRY(const std::string merges, read_text(folder, "merges.txt", kMostTokenizer));
  if (!vocabulary.empty() && !merges.empty()) {
    std::vector<std::string_view> special;
    const auto add = [&](std::string_view text) {
      const bool is_token = vocabulary.find(fmt::format("\"{}\"", text)) != std::string::npos;
      if (is_token && std::ranges::find(special, text) == special.end()) special.push_back(text);
    };
    add("<|endoftext|>");
    for (const std::string_view key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
      if (const std::string* text = text_of_token(config.in_tokenizer(key))) add(*text);
    }
    const Json* prefix = config.in_tokenizer("add_prefix_space");
    const bool has_prefix = prefix != nullptr && prefix->boolean() != nullptr && *prefix->boolean();
    TESSERA_TRY(std::string json, gpt2_tokenizer_json(vocabulary, merges, special, has_prefix));
    to.set(Setting::tokenizer_json, std::move(json), "vocab.json");
    return {};
  }
  TESSERA_TRY(const std::string pieces, read_text(folder, "vocab.txt", kMostTokenizer));
  if (pieces.empty()) return {};
  const Json* lower = config.in_tokenizer("do_lower_case");
  TESSERA_TRY(std::string json, bert_tokenizer_json(pieces, lower == nullptr || lower->boolean() == nullptr || *lower->boolean()));
  to.set(Setting::tokenizer_json, std::move(json), "vocab.txt");
  return {};
}

// Reads the tokenizer from the first of these files that the folder has: tokenizer.json, tekken.json, tokenizer.model, older files.
Status read_tokenizer(const std::filesystem::path& folder, const Config& config, Mapping& to) {
  TESSERA_TRY(std::string tokenizer, read_text(folder, "tokenizer.json", kMostTokenizer));
  if (!tokenizer.empty()) {
    to.set(Setting::tokenizer_json, std::move(tokenizer), "tokenizer.json");
    return {};
  }
  TESSERA_TRY(const std::string tekken, read_text(folder, "tekken.json", kMostTokenizer));
  if (!tekken.empty()) {
    TESSERA_TRY(std::string json, tekken_tokenizer_json(tekken, {}));
    to.set(Setting::tokenizer_json, std::move(json), "tekken.json");
    return {};
  }
  TESSERA_TRY(std::string model, read_text(folder, "tokenizer.model", kMostTokenizer));
  if (model.empty()) return read_old_files(folder, config, to);
  to.set(Setting::sentencepiece_model, std::move(model), "tokenizer.model");
  return {};
}

}  // namespace

Status read_text_settings(const std::filesystem::path& folder, const Config& config, Mapping& to) {
  TESSERA_TRY_STATUS(read_tokenizer(folder, config, to));
  set_token(to, Setting::bos_token, "bos_token", "bos_token_id");
  set_token(to, Setting::eos_token, "eos_token", "eos_token_id");
  set_token(to, Setting::padding_token, "pad_token", "pad_token_id");
  auto ends = ids_of(config.in_generation("eos_token_id"));
  if (ends.empty()) ends = ids_of(config.find_anywhere("eos_token_id"));
  if (!ends.empty()) to.set(Setting::end_tokens, std::move(ends), "generation_config.json: eos_token_id");
  for (const auto& [setting, key] : {std::pair{Setting::add_bos, "add_bos_token"}, std::pair{Setting::add_eos, "add_eos_token"}}) {
    const Json* flag = config.in_tokenizer(key);
    if (flag != nullptr && flag->boolean() != nullptr) to.set(setting, *flag->boolean(), fmt::format("tokenizer_config.json: {}", key));
  }
  const auto advise = [&](Setting setting, std::string_view key) {
    const Json* value = config.in_generation(key);
    if (value == nullptr) return;
    const std::string place = fmt::format("generation_config.json: {}", key);
    if (value->integer() != nullptr) to.set(setting, *value->integer(), place);
    else if (value->number() != nullptr) to.set(setting, *value->number(), place);
  };
  advise(Setting::sampling_temperature, "temperature");
  advise(Setting::sampling_top_k, "top_k");
  advise(Setting::sampling_top_p, "top_p");
  advise(Setting::sampling_min_p, "min_p");
  for (const std::string_view key : {"_name_or_path", "name_or_path"}) {
    const Json* name = find_in(&config.whole(), key);
    if (name != nullptr && name->string() != nullptr && !name->string()->empty()) to.set(Setting::name, *name->string(), key);
  }
  if (!to.settings.has(Setting::name)) to.set(Setting::name, folder.filename().string(), "folder");
  return read_templates(folder, config, to);
}

}  // namespace tessera::detail::hub
