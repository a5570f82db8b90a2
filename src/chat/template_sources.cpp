// Reads chat templates from a model's settings, or from transformers' tokenizer_config.json.
#include <tessera/chat/chat_template.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera {

using namespace detail;

namespace {

// Returns the text of the token whose id is the value of the setting `id_of`.
Result<std::optional<std::string>> token_text(const Settings& settings, Setting id_of) {
  if (!settings.has(id_of)) return std::optional<std::string>();
  TESSERA_TRY(const std::uint64_t id, settings.unsigned_integer(id_of));
  if (!settings.has(Setting::tokens)) {
    return error_at(ErrorCode::not_found, printable(settings.called(Setting::tokens)),
                    "the settings have no list of tokens, and so no text of {}. Those that an engine keeps have no lists: call chat_template_of(engine)",
                    to_string(id_of));
  }
  TESSERA_TRY(const ValueList tokens, settings.list(Setting::tokens));
  if (tokens.type() != ValueType::string || id >= tokens.size()) return std::optional<std::string>();
  auto at = tokens.strings().begin();
  for (std::uint64_t i = 0; i < id; ++i) ++at;
  return std::optional(std::string(*at));
}

// Returns a special token's text from tokenizer_config.json, which has it as "bos_token": "<s>" or as {"content": "<s>", ...}.
std::optional<std::string> config_token(const Json& config, std::string_view key) {
  const Json* token = config.find(key);
  if (token != nullptr && token->members() != nullptr) token = token->find("content");
  if (token == nullptr || token->string() == nullptr) return std::nullopt;
  return *token->string();
}

// Returns the template with this name from the value of chat_template; nullptr if there is none.
const Json* config_template(const Json& templates, std::string_view name) {
  if (templates.string() != nullptr) return name.empty() || name == "default" ? &templates : nullptr;
  const std::string_view wanted = name.empty() ? "default" : name;
  if (templates.members() != nullptr) return templates.find(wanted);
  if (templates.elements() == nullptr) return nullptr;
  for (const Json& entry : *templates.elements()) {
    const Json* called = entry.find("name");
    if (called != nullptr && called->string() != nullptr && *called->string() == wanted) return entry.find("template");
  }
  return nullptr;
}

}  // namespace

Result<SpecialTexts> SpecialTexts::from_settings(const Settings& settings) noexcept {
  return guard([&]() -> Result<SpecialTexts> {
    TESSERA_TRY_STATUS(settings.status());
    SpecialTexts special;
    TESSERA_TRY(special.bos, token_text(settings, Setting::bos_token));
    TESSERA_TRY(special.eos, token_text(settings, Setting::eos_token));
    TESSERA_TRY(special.pad, token_text(settings, Setting::padding_token));
    TESSERA_TRY(special.unk, token_text(settings, Setting::unknown_token));
    return special;
  });
}

Result<ChatTemplate> ChatTemplate::from_settings(const Settings& settings, std::string_view name) noexcept {
  return guard([&]() -> Result<ChatTemplate> {
    TESSERA_TRY_STATUS(settings.status());
    // If the setting chat_template exists but is not a text, the error says so. (Without this line it would be not_found.)
    if (name.empty() && settings.has(Setting::chat_template)) TESSERA_TRY_STATUS(settings.string(Setting::chat_template));
    const std::optional<std::string_view> source = settings.chat_template(name);
    if (!source) {
      const std::string place = settings.called(Setting::chat_template) + (name.empty() ? "" : "." + std::string(name));
      return error_at(ErrorCode::not_found, printable(place), "the model's file has no such chat template; give one as text");
    }
    TESSERA_TRY(SpecialTexts special, SpecialTexts::from_settings(settings));
    return parse(*source, std::move(special));
  });
}

Result<ChatTemplate> ChatTemplate::from_tokenizer_config(std::string_view json, std::string_view name) noexcept {
  return guard([&]() -> Result<ChatTemplate> {
    TESSERA_TRY(const Json config, Json::parse(json));
    const Json* templates = config.find("chat_template");
    const Json* source = templates != nullptr ? config_template(*templates, name) : nullptr;
    if (source == nullptr || source->string() == nullptr) {
      return error_at(ErrorCode::not_found, "chat_template", "the configuration has no chat template{}{}",
                      name.empty() ? "" : " called ", printable(name));
    }
    return parse(*source->string(), {.bos = config_token(config, "bos_token"),
                                     .eos = config_token(config, "eos_token"),
                                     .pad = config_token(config, "pad_token"),
                                     .unk = config_token(config, "unk_token")});
  });
}

}  // namespace tessera
