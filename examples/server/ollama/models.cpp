// GET /api/tags, /api/ps, /api/version and POST /api/show: the one model that is served.
#include <optional>
#include <tuple>
#include <variant>

#include <fmt/format.h>
#include <openssl/sha.h>

#include <tessera/extend/formats/rows.hpp>

#include "answer_wish.hpp"
#include "fill_in.hpp"
#include "json_object.hpp"
#include "names.hpp"
#include "ollama.hpp"

namespace server::ollama {

using tessera::Json;
using tessera::Setting;

namespace {

// The release of Ollama whose requests are supported. Clients read this version, and do not use features of newer releases.
constexpr const char* kVersion = "0.12.11";

std::string architecture_of(const ServedModel& model) {
  const auto name = model.engine().metadata().string(Setting::architecture);
  return name ? std::string(*name) : std::string();
}

// Return a number or a text of the file's metadata for which the library has no setting.
std::optional<std::uint64_t> whole_of(const ServedModel& model, const char* key) {
  const auto value = model.engine().metadata().find_key(key);
  if (!value) return std::nullopt;
  if (const auto* whole = std::get_if<std::uint64_t>(&*value)) return *whole;
  const auto* whole = std::get_if<std::int64_t>(&*value);
  return whole != nullptr && *whole >= 0 ? std::optional(static_cast<std::uint64_t>(*whole)) : std::nullopt;
}

std::string text_of(const ServedModel& model, const char* key) {
  const auto value = model.engine().metadata().find_key(key);
  const auto* text = value ? std::get_if<std::string_view>(&*value) : nullptr;
  return text == nullptr ? std::string() : std::string(*text);
}

// Names the format of general.file_type, which is llama.cpp's number for a whole file.
struct FileFormat {
  std::string name = "unknown";
  double bits = 0.0;  // bits a weight; 0: not known
};

FileFormat format_of(const ServedModel& model) {
  constexpr std::tuple<std::uint64_t, std::string_view, tessera::DType> kMixes[] = {
      {12, "Q3_K_M", tessera::DType::q3_k}, {13, "Q3_K_L", tessera::DType::q3_k}, {14, "Q4_K_S", tessera::DType::q4_k}, {15, "Q4_K_M", tessera::DType::q4_k},
      {16, "Q5_K_S", tessera::DType::q5_k}, {17, "Q5_K_M", tessera::DType::q5_k}};
  const auto bits_of = [](tessera::DType type) {
    const auto block = tessera::formats::block_of(type);
    return block ? 8.0 * static_cast<double>(block->bytes) / static_cast<double>(block->values) : 0.0;
  };
  const auto number = whole_of(model, "general.file_type");
  if (!number) return {};
  for (const auto& [file_type, name, type] : kMixes) {
    if (file_type == *number) return {std::string(name), bits_of(type)};
  }
  for (const tessera::DType type : tessera::formats::all()) {
    const auto writing = tessera::formats::writing_of(type);
    if (writing && writing->file_type == *number) return {std::string(to_string(type)), bits_of(type)};
  }
  return {};
}

// Returns the number of parameters that the file states, else an estimate from its bytes.
std::uint64_t parameters_of(const ServedModel& model) {
  if (const auto count = whole_of(model, "general.parameter_count")) return *count;
  const double bits = format_of(model).bits;
  return bits > 0.0 ? static_cast<std::uint64_t>(8.0 * static_cast<double>(model.engine().plan().weights) / bits) : 0;
}

std::string rounded(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.1f}B", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.2f}M", number / 1e6);
  return number >= 1e3 ? fmt::format("{:.0f}K", number / 1e3) : fmt::format("{}", count);
}

// Returns "135M": the file's own size label, else one made of parameters_of().
std::string parameter_size_of(const ServedModel& model) {
  std::string label = text_of(model, "general.size_label");
  return label.empty() ? rounded(parameters_of(model)) : label;
}

Json details_of(const ServedModel& model) {
  const std::string architecture = architecture_of(model);
  return Object()
      .set("parent_model", "")
      .set("format", "gguf")
      .set("family", architecture)
      .set("families", Json::Array{Json(architecture)})
      .set("parameter_size", parameter_size_of(model))
      .set("quantization_level", format_of(model).name);
}

std::int64_t size_of(const ServedModel& model) { return static_cast<std::int64_t>(model.engine().plan().weights); }

// Returns a digest of name, size and format, because a checksum over gigabytes would take seconds at the start.
std::string digest_of(const ServedModel& model) {
  const std::string text = fmt::format("{} {} {} {}", model.id(), architecture_of(model), size_of(model), format_of(model).name);
  unsigned char sum[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum);
  std::string hex;
  for (const unsigned char byte : sum) hex += fmt::format("{:02x}", byte);
  return hex;
}

Object listed(const ServedModel& model) {
  const std::string name = listed_name(model);
  return Object().set("name", name).set("model", name).set("size", size_of(model)).set("digest", digest_of(model)).set("details", details_of(model));
}

void send(const Call& call, const Object& object) { call.reply->send({.body = object.dump()}); }

Json json_of(bool truth) { return Json(truth); }
Json json_of(std::int64_t whole) { return Json(whole); }
Json json_of(std::uint64_t whole) { return Json(static_cast<std::int64_t>(whole)); }
Json json_of(double number) { return Json(number); }
Json json_of(std::string_view text) { return Json(std::string(text)); }
Json json_of(const tessera::ValueList&) { return {}; }  // null, because lists are left out

// Returns the file's metadata, without lists and the template, and with the context length of this server.
Json info_of(const ServedModel& model) {
  const tessera::Settings& settings = model.engine().metadata();
  const std::string context = settings.called(Setting::context), chat_template = settings.called(Setting::chat_template);
  Object info = Object().set("general.parameter_count", static_cast<std::int64_t>(parameters_of(model)));
  info.set(context, static_cast<std::int64_t>(model.context()));
  std::optional<tessera::FileKey> key;
  for (std::size_t i = 0; (key = settings.file_key(i)); ++i) {
    if (key->name == context || key->name == "general.parameter_count" || key->name.starts_with(chat_template)) continue;
    Json value = std::visit([](const auto& held) { return json_of(held); }, key->value);
    if (!value.is_null()) info.set(std::string(key->name), std::move(value));
  }
  return info;
}

Json::Array capabilities_of(const ServedModel& model) {
  const bool writes = model.engine().spec().has_logits;
  Json::Array capabilities;
  if (writes) capabilities.emplace_back("completion");
  if (model.has_template()) capabilities.emplace_back("tools");  // told in words if the template knows no tools
  if (model.reasons()) capabilities.emplace_back("thinking");
  if (fills_in(model)) capabilities.emplace_back("insert");
  if (!writes || model.engine().metadata().unsigned_integer(Setting::pooling)) capabilities.emplace_back("embedding");
  return capabilities;
}

}  // namespace

void tags(const Api& api, const Call& call) {
  const ServedModel& model = api.job.model;
  send(call, Object().set("models", Json::Array{listed(model).set("modified_at", time_text(model.created()))}));
}

void ps(const Api& api, const Call& call) {
  constexpr std::int64_t kYears = std::int64_t{100} * 365 * 86400;  // the model stays loaded as long as the server runs
  const ServedModel& model = api.job.model;
  Object running = listed(model);
  running.set("expires_at", time_text(model.created() + kYears));
  running.set("size_vram", model.engine().plan().device_peak > 0 ? size_of(model) : std::int64_t{0});
  running.set("context_length", static_cast<std::int64_t>(model.context()));
  send(call, Object().set("models", Json::Array{std::move(running)}));
}

void version(const Api&, const Call& call) { send(call, Object().set("version", kVersion)); }

void show(const Api& api, const Call& call) {
  const ServedModel& model = api.job.model;
  const Json body = body_of(call, kOllamaShow);
  Fields fields(body);
  (void)read_name(fields, api);
  (void)read_keep_alive(fields, call.notes);
  (void)fields.boolean("verbose");
  fields.done(call.notes);
  const AnswerFields usual;
  send(call, Object()
                 .set("license", text_of(model, "general.license"))
                 .set("modelfile", fmt::format("FROM {}\n", listed_name(model)))
                 .set("parameters", fmt::format("num_ctx {}\ntemperature {}\ntop_p {}", model.context(), usual.temperature, usual.top_p))
                 .set("template", std::string(model.template_source()))
                 .set("details", details_of(model))
                 .set("model_info", info_of(model))
                 .set("capabilities", capabilities_of(model))
                 .set("modified_at", time_text(model.created())));
}

}  // namespace server::ollama
