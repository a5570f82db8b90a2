// Where templates are kept: a model's metadata, and transformers' tokenizer_config.json.
#include <tessera/chat/chat_template.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera {

using namespace detail;

namespace {

// The text of the token whose id is the value of `key`.
Result<std::optional<std::string>> token_text(const GgufFile& file, std::string_view key) {
  if (file.find(key) == nullptr) return std::optional<std::string>();
  TESSERA_TRY(const std::uint64_t id, file.unsigned_integer(key));
  TESSERA_TRY(const GgufArray tokens, file.array("tokenizer.ggml.tokens"));
  if (tokens.type() != GgufType::string || id >= tokens.size()) return std::optional<std::string>();
  auto at = tokens.strings().begin();
  for (std::uint64_t i = 0; i < id; ++i) ++at;
  return std::optional(std::string(*at));
}

// "bos_token": "<s>" or {"content": "<s>", ...}
std::optional<std::string> config_token(const Json& config, std::string_view key) {
  const Json* token = config.find(key);
  if (token != nullptr && token->members() != nullptr) token = token->find("content");
  if (token == nullptr || token->string() == nullptr) return std::nullopt;
  return *token->string();
}

// The template of a name in chat_template; nullptr if it has none.
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

Result<SpecialTexts> SpecialTexts::from_gguf(const GgufFile& file) noexcept {
  return guard([&]() -> Result<SpecialTexts> {
    if (file.version() == 0) return empty_handle("GgufFile");
    SpecialTexts special;
    TESSERA_TRY(special.bos, token_text(file, "tokenizer.ggml.bos_token_id"));
    TESSERA_TRY(special.eos, token_text(file, "tokenizer.ggml.eos_token_id"));
    TESSERA_TRY(special.pad, token_text(file, "tokenizer.ggml.padding_token_id"));
    TESSERA_TRY(special.unk, token_text(file, "tokenizer.ggml.unknown_token_id"));
    return special;
  });
}

Result<ChatTemplate> ChatTemplate::from_gguf(const GgufFile& file, std::string_view name) noexcept {
  return guard([&]() -> Result<ChatTemplate> {
    if (file.version() == 0) return empty_handle("GgufFile");
    const std::string key = "tokenizer.chat_template" + (name.empty() ? "" : "." + std::string(name));
    if (file.find(key) == nullptr) {
      return error_at(ErrorCode::not_found, printable(key), "the model's file has no such chat template; give one as text");
    }
    TESSERA_TRY(const std::string_view source, file.string(key));
    TESSERA_TRY(SpecialTexts special, SpecialTexts::from_gguf(file));
    return parse(source, std::move(special));
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
