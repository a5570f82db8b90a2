#include "models/model_list.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "failure.hpp"
#include "model_place.hpp"
#include "system/program.hpp"

namespace server {

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

// Returns a model's default name: the file's name, because the name in a file's metadata may have spaces and other characters.
std::string id_of(const fs::path& path) {
  const std::string stem = text_of(path.stem());
  return stem.empty() ? "model" : stem;
}

// Reads "NAME=PLACE" or "PLACE". The whole text is the place if a file of this name exists.
ConfiguredModel read_argument(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::error_code ignored;
  const bool is_named = equals != text.npos && equals > 0 && text.find_first_of("/\\:") > equals && !fs::exists(tessera::tool::path_of(text), ignored);
  ConfiguredModel model;
  const std::string place = is_named ? text.substr(equals + 1) : text;
  if (place.empty()) throw UsageError(fmt::format("-m {}: a file or folder is missing behind the name", text));
  model.path = value(tessera::tool::model_place(place));
  model.id = is_named ? text.substr(0, equals) : id_of(tessera::tool::path_of(place));
  return model;
}

// Returns whether an entry of a folder is a model: a GGUF file, the first part of a split GGUF file, or a folder with a config.json.
bool is_model(const fs::directory_entry& entry) {
  std::error_code ignored;
  if (text_of(entry.path().filename()).starts_with('.')) return false;
  if (entry.is_directory(ignored)) return fs::exists(entry.path() / "config.json", ignored);
  static const std::regex part("-([0-9]{5})-of-[0-9]{5}$");
  std::smatch found;
  const std::string stem = text_of(entry.path().stem());
  if (entry.path().extension() != ".gguf") return false;
  return !std::regex_search(stem, found, part) || found[1] == "00001";
}

std::vector<ConfiguredModel> read_folder(const std::string& folder) {
  std::error_code error;
  std::vector<ConfiguredModel> models;
  static const std::regex part("-00001-of-[0-9]{5}$");
  for (auto each = fs::directory_iterator(tessera::tool::path_of(folder), error); !error && each != fs::directory_iterator(); each.increment(error)) {
    if (!is_model(*each)) continue;
    ConfiguredModel model;
    model.path = each->path();
    std::error_code ignored;
    model.id = each->is_directory(ignored) ? text_of(each->path().filename()) : std::regex_replace(id_of(each->path()), part, "");
    models.push_back(std::move(model));
  }
  if (error) throw Failure(tessera::ErrorCode::not_found, fmt::format("--models: cannot read the folder {}: {}", folder, error.message()));
  if (models.empty()) throw UsageError(fmt::format("--models: there is no model in {}: put GGUF files there, or folders with a config.json", folder));
  std::ranges::sort(models, {}, [](const ConfiguredModel& model) { return std::pair(model.id, text_of(model.path.filename())); });
  for (std::size_t i = 1; i < models.size(); ++i) {  // if two models have the same name, the later one gets its whole file name
    if (models[i].id == models[i - 1].id) models[i].id = text_of(models[i].path.filename());
  }
  return models;
}

}  // namespace

std::vector<ConfiguredModel> list_configured(const NamedModels& names) {
  std::vector<ConfiguredModel> models;
  for (const std::string& text : names.models) models.push_back(read_argument(text));
  if (names.ids.size() > models.size() && (names.ids.size() > 1 || names.folder)) {
    throw UsageError(fmt::format("--model-id {}: this names a model of -m, and there are {}; models of --models have the names of their files", names.ids.back(), models.size()));
  }
  for (std::size_t i = 0; i < std::min(names.ids.size(), models.size()); ++i) models[i].id = names.ids[i];
  if (names.folder) {
    for (ConfiguredModel& model : read_folder(*names.folder)) models.push_back(std::move(model));
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (models[i].id.empty()) throw UsageError("--model-id: a name is empty");
    const auto same = std::find_if(models.begin(), models.begin() + static_cast<std::ptrdiff_t>(i), [&](const ConfiguredModel& each) { return each.id == models[i].id; });
    if (same == models.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    throw UsageError(fmt::format("two models are called \"{}\" ({} and {}): name them with -m NAME=FILE", models[i].id, text_of(same->path), text_of(models[i].path)));
  }
  for (const std::string& pin : names.pins) {
    const auto found = std::ranges::find(models, pin, &ConfiguredModel::id);
    if (found == models.end()) {
      std::vector<std::string> all;
      for (const ConfiguredModel& model : models) all.push_back(model.id);
      throw UsageError(fmt::format("--pin {}: there is no model of this name; there are: {}", pin, all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "))));
    }
    found->is_pinned = true;
  }
  return models;
}

std::vector<ConfiguredAdapter> list_adapters(const std::vector<std::string>& texts, const std::vector<ConfiguredModel>& models) {
  std::vector<ConfiguredAdapter> adapters;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      throw UsageError(fmt::format("--lora {}: give the adapter a name, NAME={}", text, equals == text.npos ? text : "FILE"));
    }
    ConfiguredAdapter adapter{.name = text.substr(0, equals), .path = tessera::tool::path_of(text.substr(equals + 1))};
    if (const std::size_t slash = adapter.name.find('/'); slash != text.npos) {
      const auto found = std::ranges::find(models, adapter.name.substr(0, slash), &ConfiguredModel::id);
      if (found == models.end()) throw UsageError(fmt::format("--lora {}: there is no model \"{}\"", text, adapter.name.substr(0, slash)));
      adapter.model = static_cast<std::size_t>(found - models.begin());
      adapter.name = adapter.name.substr(slash + 1);
    }
    const bool is_taken = std::ranges::find(models, adapter.name, &ConfiguredModel::id) != models.end() ||
                          std::ranges::find(adapters, adapter.name, &ConfiguredAdapter::name) != adapters.end();
    if (adapter.name.empty() || is_taken) throw UsageError(fmt::format("--lora {}: the name \"{}\" is {}", text, adapter.name, is_taken ? "taken" : "empty"));
    std::error_code ignored;
    if (!fs::exists(adapter.path, ignored)) throw UsageError(fmt::format("--lora {}: there is no file {}", text, text_of(adapter.path)));
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

}  // namespace server
