#include "hub/config.hpp"

#include <system_error>

#include <tessera/extend/files/byte_source.hpp>

#include "core/error.hpp"
#include "files/safetensors/foreign_file.hpp"
#include "os/file.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::uint64_t kMostConfig = std::uint64_t{4} << 20;  // limit for the bytes of a configuration, more than any model has
constexpr std::size_t kMostValues = 400'000;  // limit for the values of a configuration (at most 64 MB of memory); models have 60,000

// Returns the JSON in a file; null if there is no such file.
Result<Json> read_json(const std::filesystem::path& folder, std::string_view name) {
  TESSERA_TRY(const std::string text, read_text(folder, name, kMostConfig));
  if (text.empty()) return Json();
  auto json = Json::parse(text, {.most_values = kMostValues});
  if (json || json.error().code() == ErrorCode::out_of_memory) return json;
  return error_at(ErrorCode::corrupt_file, os::text_of(folder / name), "{}", json.error().text());
}

}  // namespace

Result<std::string> read_text(const std::filesystem::path& folder, std::string_view name, std::uint64_t most) {
  const std::filesystem::path path = folder / name;
  std::error_code problem;
  if (!std::filesystem::exists(path, problem)) return std::string();
  TESSERA_TRY(const auto source, open_file(path));
  if (source->size() > most) {
    return error_at(ErrorCode::corrupt_file, os::text_of(path), "the file has {} bytes; expected at most {}", source->size(), most);
  }
  std::string text(source->size(), '\0');
  TESSERA_TRY_STATUS(source->read(0, std::as_writable_bytes(std::span(text))));
  if (text.starts_with("version https://git-lfs")) {
    if (auto error = foreign_file_error(*source, std::string(name).c_str())) return *std::move(error);
  }
  return text;
}

Result<Json> read_object(const std::filesystem::path& folder, std::string_view name) {
  TESSERA_TRY(Json json, read_json(folder, name));
  if (!json.is_null() && json.members() == nullptr) return error_at(ErrorCode::corrupt_file, os::text_of(folder / name), "expected a JSON object");
  return json;
}

Result<Json> read_list(const std::filesystem::path& folder, std::string_view name) {
  TESSERA_TRY(Json json, read_json(folder, name));
  if (!json.is_null() && json.elements() == nullptr) return error_at(ErrorCode::corrupt_file, os::text_of(folder / name), "expected a JSON list");
  return json;
}

const Json* find_in(const Json* object, std::string_view key) noexcept {
  const Json* value = object == nullptr ? nullptr : object->find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<Config> Config::read(const std::filesystem::path& folder) {
  Config config;
  TESSERA_TRY(config.whole_, read_object(folder, "config.json"));
  std::error_code ignored;
  if (config.whole_.is_null() && std::filesystem::exists(folder / "adapter_config.json", ignored)) {
    return error_at(ErrorCode::unsupported, os::text_of(folder),
                    "the folder has adapter_config.json and no config.json: it is an adapter (LoRA), not a model; load the model that it belongs to");
  }
  if (config.whole_.is_null()) {
    if (std::filesystem::exists(folder / "config.json", ignored)) {
      return error_at(ErrorCode::corrupt_file, os::text_of(folder / "config.json"), "the file is empty, as after an interrupted download: fetch it again");
    }
    if (std::filesystem::exists(folder / "params.json", ignored)) {
      return error_at(ErrorCode::unsupported, os::text_of(folder / "params.json"),
                      "the folder is in Mistral's own layout (params.json, consolidated.safetensors): fetch config.json and the model's other *.safetensors too");
    }
    return error_at(ErrorCode::not_found, os::text_of(folder),
                    "the folder has no config.json: a model's folder has one beside its *.safetensors; download it, and the tokenizer's files, too");
  }
  TESSERA_TRY(config.generation_, read_object(folder, "generation_config.json"));
  TESSERA_TRY(config.tokenizer_, read_object(folder, "tokenizer_config.json"));
  for (const std::string_view file : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    if (config.quantisation() != nullptr) break;
    TESSERA_TRY(config.quantisation_, read_object(folder, file));
  }
  return config;
}

const Json* Config::quantisation() const noexcept {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    if (const Json* value = find_anywhere(key)) return value;
  }
  if (const Json* value = find_in(&quantisation_, "quantization")) return value;
  return quantisation_.is_null() ? nullptr : &quantisation_;
}

const Json& Config::model() const noexcept {
  for (const std::string_view key : {"text_config", "llm_config", "language_config", "transformer_layer_config"}) {
    const Json* part = find_in(&whole_, key);
    if (part != nullptr && part->members() != nullptr) return *part;
  }
  return whole_;
}

const Json* Config::find(std::string_view key) const noexcept { return find_in(&model(), key); }

const Json* Config::find_anywhere(std::string_view key) const noexcept {
  const Json* value = find(key);
  return value != nullptr ? value : find_in(&whole_, key);
}

const Json* Config::find_outside(std::string_view key) const noexcept {
  const Json* value = find_in(&whole_, key);
  return value != nullptr ? value : find(key);
}

const Json* Config::in_generation(std::string_view key) const noexcept { return find_in(&generation_, key); }
const Json* Config::in_tokenizer(std::string_view key) const noexcept { return find_in(&tokenizer_, key); }

std::string_view Config::model_type() const noexcept {
  const Json* type = find_anywhere("model_type");
  return type == nullptr || type->string() == nullptr ? std::string_view() : std::string_view(*type->string());
}

}  // namespace tessera::detail::hub
