#include "folder_report.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/text/tokenizer.hpp>

#include "show.hpp"

namespace tessera::inspect {
namespace {

using Json = nlohmann::ordered_json;

// A setting that the folder has.
struct Row {
  Setting setting;
  SettingValue value;
};

std::vector<Row> rows_of(const Settings& settings) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < kSettings; ++i) {
    const auto setting = static_cast<Setting>(i);
    if (auto value = settings.find(setting)) rows.push_back({setting, *std::move(value)});
  }
  return rows;
}

std::optional<SettingValue> value_under(const Settings& settings, std::string_view key) {
  for (Row& row : rows_of(settings)) {
    if (key == to_string(row.setting) || key == settings.called(row.setting)) return std::move(row.value);
  }
  return std::nullopt;
}

std::string element_text(const ValueList& list, std::uint64_t i) {
  if (list.type() == ValueType::boolean) return list.integer(i) != 0 ? "true" : "false";
  return list.is_integer() ? fmt::format("{}", list.integer(i)) : fmt::format("{}", static_cast<float>(list.number(i)));
}

std::vector<std::string> elements(const ValueList& list, std::uint64_t most) {
  std::vector<std::string> out;
  if (list.type() == ValueType::string) {
    for (const std::string_view text : list.strings()) {
      if (out.size() >= most) break;
      out.emplace_back(text);
    }
  } else {
    for (std::uint64_t i = 0; i < std::min(most, list.size()); ++i) out.push_back(element_text(list, i));
  }
  return out;
}

// Returns a value on one line; a list shows its first elements.
std::string line_of(const SettingValue& value) {
  constexpr std::uint64_t kShown = 6;
  return std::visit(
      []<class T>(const T& of) -> std::string {
        if constexpr (std::is_same_v<T, ValueList>) {
          std::string out = fmt::format("[{}", cut(fmt::format("{}", fmt::join(elements(of, kShown), ", "))));
          return out + (of.size() > kShown ? fmt::format(", ... {} in all]", of.size()) : "]");
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          return cut(of);
        } else {
          return fmt::format("{}", of);
        }
      },
      value);
}

std::string settings_text(const Settings& settings) {
  const auto rows = rows_of(settings);
  std::size_t width = 0, key_width = 0;
  for (const Row& row : rows) {
    width = std::max(width, to_string(row.setting).size());
    key_width = std::max(key_width, settings.called(row.setting).size());
  }
  std::string out = fmt::format("settings: {} (the library's name, the folder's key, the value)\n", rows.size());
  for (const Row& row : rows) {
    const bool is_file = row.setting == Setting::tokenizer_json || row.setting == Setting::sentencepiece_model;
    std::string value;
    if (const auto* text = std::get_if<std::string_view>(&row.value); text != nullptr && is_file) value = size_text(text->size());
    else if (text != nullptr && row.setting == Setting::chat_template) value = block(*text);
    else value = line_of(row.value);
    out += fmt::format("  {:<{}}  {:<{}}  {}\n", to_string(row.setting), width, shown(settings.called(row.setting)), key_width, value);
  }
  return out;
}

std::string tokenizer_text(const Settings& settings) {
  const auto tokenizer = Tokenizer::from_settings(settings);
  if (!tokenizer) return fmt::format("tokenizer: none that tessera reads: {}\n", shown(tokenizer.error().text()));
  std::string out = fmt::format("tokenizer: {} tokens\n", tokenizer->vocab_size());
  const auto line = [&](const char* name, std::optional<Token> token, bool added) {
    if (!token) return;
    out += fmt::format("  {:<6} {:>8}  {}{}\n", name, *token, shown(tokenizer->text(*token)), added ? "  (added by encoding)" : "");
  };
  line("BOS", tokenizer->bos(), tokenizer->adds_bos());
  line("EOS", tokenizer->eos(), tokenizer->adds_eos());
  for (std::size_t i = 0; i < tokenizer->vocab_size(); ++i) {
    const auto token = static_cast<Token>(i);
    if (tokenizer->is_end_of_generation(token) && tokenizer->eos() != token) line("end", token, false);
  }
  return out;
}

std::string tensors_text(const ModelSource& model) {
  std::size_t width = 4, own = 4;
  std::uint32_t parts = 0;
  for (const TensorInfo& tensor : model.tensors()) {
    width = std::max(width, tensor.name.size());
    own = std::max(own, model.called(tensor.name).size());
    parts = std::max(parts, tensor.part);
  }
  std::string out = fmt::format("tensors: {} (shape: innermost dimension first)\n", model.tensors().size());
  out += fmt::format("  {:<{}}  {:<{}}  {:<5} {:<24} {:>14}{}\n", "name", width, "in the folder", own, "type", "shape", "bytes", parts > 0 ? "  file" : "");
  for (const TensorInfo& tensor : model.tensors()) {
    const std::string shape = fmt::format("{}", fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims, " x "));
    out += fmt::format("  {:<{}}  {:<{}}  {:<5} {:<24} {:>14}", shown(tensor.name), width, shown(model.called(tensor.name)), own,
                       type_text(tensor.dtype), shape, tensor.bytes);
    out += parts > 0 ? fmt::format("  {:>4}\n", tensor.part + 1) : "\n";
  }
  return out + totals_text(model);
}

Json json_of(const SettingValue& value) {
  return std::visit(
      []<class T>(const T& of) -> Json {
        if constexpr (std::is_same_v<T, ValueList>) {
          Json out = Json::array();
          for (const std::string_view text : of.strings()) out.push_back(std::string(text));
          if (of.type() == ValueType::string) return out;
          for (std::uint64_t i = 0; i < of.size(); ++i) {
            if (of.type() == ValueType::boolean) out.push_back(of.integer(i) != 0);
            else if (of.is_integer()) out.push_back(of.integer(i));
            else out.push_back(of.number(i));
          }
          return out;
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          return std::string(of);
        } else {
          return of;
        }
      },
      value);
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string folder_text(const ModelSource& model, const Sections& sections) {
  const Settings& settings = model.settings();
  std::string out = fmt::format("{}: a folder, {} tensors\n", shown(settings.origin()), model.tensors().size());
  const auto section = [&](const std::string& text) { out += '\n', out += text; };
  if (sections.metadata) section(settings_text(settings)), section(tokenizer_text(settings));
  if (sections.tensors) section(tensors_text(model));
  if (sections.plan) section(plan_text(*sections.plan));
  return out;
}

std::string folder_json(const ModelSource& model, const Sections& sections) {
  const Settings& settings = model.settings();
  Json out;
  out["folder"] = settings.origin();
  if (sections.metadata) {
    Json& list = out["settings"] = Json::object();
    for (const Row& row : rows_of(settings)) list[std::string(to_string(row.setting))] = {{"key", settings.called(row.setting)}, {"value", json_of(row.value)}};
  }
  if (sections.tensors) {
    Json& tensors = out["tensors"] = Json::array();
    for (const TensorInfo& tensor : model.tensors()) {
      tensors.push_back({{"name", tensor.name}, {"in_folder", model.called(tensor.name)}, {"type", to_string(tensor.dtype)},
                         {"shape", std::vector<std::uint64_t>(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims)},
                         {"bytes", tensor.bytes}, {"part", tensor.part}});
    }
    for (const auto& [type, total] : totals_of(model)) {
      out["totals"][type.empty() ? "all" : type] = {{"tensors", total.tensors}, {"values", total.values}, {"bytes", total.bytes}};
    }
  }
  if (sections.plan) out["plan"] = Json::parse(plan_json(*sections.plan));
  return dump(out);
}

std::optional<std::string> folder_value(const ModelSource& model, std::string_view key) {
  const auto value = value_under(model.settings(), key);
  if (!value) return std::nullopt;
  if (const auto* text = std::get_if<std::string_view>(&*value)) return std::string(*text) + "\n";
  if (const auto* list = std::get_if<ValueList>(&*value)) {
    std::string out;
    for (const std::string& text : elements(*list, list->size())) out += text + "\n";
    return out;
  }
  return line_of(*value) + "\n";
}

std::optional<std::string> folder_json_value(const ModelSource& model, std::string_view key) {
  const auto value = value_under(model.settings(), key);
  return value ? std::optional(dump(json_of(*value))) : std::nullopt;
}

}  // namespace tessera::inspect
