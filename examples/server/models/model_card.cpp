#include "models/model_card.hpp"

#include <algorithm>
#include <ctime>
#include <initializer_list>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <tessera/extend/chat/template_use.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "apis/fill_in.hpp"
#include "failure.hpp"
#include "models/served_model.hpp"

namespace server {

using tessera::Json;
using tessera::Setting;
using tessera::Settings;

namespace {

// Return the value of a key of the file, for keys that are not settings of the library. whole_of() returns an integer that is not negative,
// text_of() a text. If the file has no such value, whole_of() returns nullopt, and text_of() an empty text.
std::optional<std::uint64_t> whole_of(const Settings& settings, const char* key) {
  const auto found = settings.find_key(key);
  if (!found) return std::nullopt;
  if (const auto* whole = std::get_if<std::uint64_t>(&*found)) return *whole;
  const auto* whole = std::get_if<std::int64_t>(&*found);
  return whole != nullptr && *whole >= 0 ? std::optional(static_cast<std::uint64_t>(*whole)) : std::nullopt;
}

std::string text_of(const Settings& settings, const char* key) {
  const auto found = settings.find_key(key);
  const auto* text = found ? std::get_if<std::string_view>(&*found) : nullptr;
  return text == nullptr ? std::string() : std::string(*text);
}

// The format of a whole file. The setting general.file_type names this format by a number that llama.cpp has defined.
struct FileFormat {
  std::string name = "unknown";
  double bits = 0.0;  // bits for each weight; of a mix: the bits of its main format; 0: not known
};

FileFormat format_of(const Settings& settings) {
  constexpr std::tuple<std::uint64_t, std::string_view, tessera::DType> kMixes[] = {
      {12, "Q3_K_M", tessera::DType::q3_k}, {13, "Q3_K_L", tessera::DType::q3_k}, {14, "Q4_K_S", tessera::DType::q4_k}, {15, "Q4_K_M", tessera::DType::q4_k},
      {16, "Q5_K_S", tessera::DType::q5_k}, {17, "Q5_K_M", tessera::DType::q5_k}};
  const auto bits_of = [](tessera::DType type) {
    const auto block = tessera::formats::block_of(type);
    return block ? 8.0 * static_cast<double>(block->bytes) / static_cast<double>(block->values) : 0.0;
  };
  const auto number = whole_of(settings, "general.file_type");
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

std::uint64_t count_parameters(const tessera::ModelSource& source) {
  std::uint64_t count = 0;
  for (const tessera::TensorInfo& tensor : source.tensors()) count += tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
  return count;
}

std::string rounded(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.1f}B", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.2f}M", number / 1e6);
  return number >= 1e3 ? fmt::format("{:.0f}K", number / 1e3) : fmt::format("{}", count);
}

Json json_of(bool truth) { return Json(truth); }
Json json_of(std::int64_t whole) { return Json(whole); }
Json json_of(std::uint64_t whole) { return Json(static_cast<std::int64_t>(whole)); }
Json json_of(double number) { return Json(number); }
Json json_of(std::string_view text) { return Json(std::string(text)); }
Json json_of(const tessera::ValueList&) { return {}; }  // null, because lists are left out

Json info_of(const Settings& settings, const ModelCard& card) {
  constexpr std::size_t kLongest = 1 << 20;  // bytes of a text; longer texts are left out, as in an engine's metadata
  const std::string context = settings.called(Setting::context), chat_template = settings.called(Setting::chat_template);
  Object info = Object().set("general.parameter_count", static_cast<std::int64_t>(card.parameters));
  info.set(context, static_cast<std::int64_t>(card.context));
  std::optional<tessera::FileKey> key;
  for (std::size_t i = 0; (key = settings.file_key(i)); ++i) {
    if (key->name == context || key->name == "general.parameter_count" || key->name.starts_with(chat_template)) continue;
    if (const auto* text = std::get_if<std::string_view>(&key->value); text != nullptr && text->size() > kLongest) continue;
    Json value = std::visit([](const auto& held) { return json_of(held); }, key->value);
    if (!value.is_null()) info.set(std::string(key->name), std::move(value));
  }
  return info;
}

void read_template(ModelCard& card, const Settings& settings, std::optional<tessera::ChatTemplate> chat_template) {
  const auto own = settings.string(Setting::chat_template);
  if (!chat_template && own) chat_template = value(tessera::ChatTemplate::parse(*own, tessera::SpecialTexts::from_settings(settings).value_or({})));
  if (!chat_template) return;
  card.template_source = std::string(chat_template->source());
  card.knows_tools = value(tessera::prints_tools(*chat_template));
  card.reasons = knows_reasoning(value(tessera::choose_output_format(*chat_template)), card.template_source);
}

}  // namespace

bool knows_reasoning(const tessera::OutputFormat& format, std::string_view template_source) {
  if (std::ranges::none_of(format.regions, [](const tessera::OutputRegion& region) { return region.kind == tessera::RegionKind::reasoning; })) return false;
  // Decides by the words of the template whether the model reasons. The output format alone does not show this, because the default format
  // has a region for <think>, whatever the model.
  return std::ranges::any_of(std::initializer_list<std::string_view>{"think", "THINK", "reason"}, [&](std::string_view word) { return template_source.find(word) != std::string_view::npos; });
}

bool writes_text(const Settings& settings) {
  const auto causal = settings.boolean(Setting::causal);
  if (causal && !*causal) return false;
  const std::string_view architecture = settings.string(Setting::architecture).value_or({});
  return architecture.find("bert") == architecture.npos && architecture.find("embedding") == architecture.npos && architecture != "t5encoder";
}

std::optional<tessera::ChatTemplate> template_of(const std::optional<std::string>& text, const tessera::ModelSource& source) {
  if (!text) return std::nullopt;
  return value(tessera::ChatTemplate::parse(*text, value(tessera::SpecialTexts::from_settings(source.settings()))));
}

ModelCard make_card(std::string id, const tessera::ModelSource& source, const tessera::Plan& plan,
                    const std::optional<tessera::ChatTemplate>& chat_template) {
  const Settings& settings = source.settings();
  ModelCard card{.id = std::move(id), .created = std::time(nullptr), .context = plan.context, .weights = plan.weights, .bytes = plan.peak};
  card.on_device = plan.device_peak > 0;
  if (const auto* table = source.find_tensor("token_embd.weight")) card.vocabulary = table->dims[1];
  if (const auto name = settings.string(Setting::architecture)) card.architecture = std::string(*name);
  card.license = text_of(settings, "general.license");
  const FileFormat format = format_of(settings);
  card.format = format.name;
  const auto stated = whole_of(settings, "general.parameter_count");
  if (stated) card.parameters = *stated;
  else if (format.bits > 0.0) card.parameters = static_cast<std::uint64_t>(8.0 * static_cast<double>(plan.weights) / format.bits);
  else card.parameters = count_parameters(source);
  card.parameter_size = text_of(settings, "general.size_label");
  if (card.parameter_size.empty()) card.parameter_size = rounded(card.parameters);
  card.writes = writes_text(settings);
  card.embeds = settings.unsigned_integer(Setting::pooling).has_value();
  read_template(card, settings, chat_template);
  card.info = info_of(settings, card);
  return card;
}

void refresh_card(ModelCard& card, const ServedModel& model) {
  card.context = model.context();
  card.vocabulary = model.engine().spec().vocab_size;
  card.weights = model.engine().plan().weights;
  card.writes = model.engine().spec().has_logits;
  card.fills_in = fills_in(model);
}

Object model_object(const ModelCard& card) {
  Json::Array capabilities;
  if (card.writes) capabilities.emplace_back("completion");
  if (card.knows_tools) capabilities.emplace_back("tools");
  if (card.reasons) capabilities.emplace_back("thinking");
  if (!card.writes || card.embeds) capabilities.emplace_back("embedding");
  const Object meta = Object()
                        .set("context_length", static_cast<std::int64_t>(card.context))
                        .set("vocabulary", static_cast<std::int64_t>(card.vocabulary))
                        .set("weights_bytes", static_cast<std::int64_t>(card.weights))
                        .set("memory_bytes", static_cast<std::int64_t>(card.bytes))
                        .set("architecture", card.architecture.empty() ? Json() : Json(card.architecture))
                        .set("has_chat_template", card.has_template())
                        .set("capabilities", std::move(capabilities));
  return Object()
      .set("id", card.id)
      .set("object", "model")
      .set("created", card.created)
      .set("owned_by", "tessera")
      .set("root", card.id)
      .set("parent", Json())
      .set("max_model_len", static_cast<std::int64_t>(card.context))
      .set("meta", meta);
}

}  // namespace server
