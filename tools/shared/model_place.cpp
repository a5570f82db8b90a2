#include "model_place.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <tessera/json/json.hpp>

#include "system/program.hpp"

namespace tessera::tool {

namespace {

namespace fs = std::filesystem;

std::optional<fs::path> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional(path_of(value));
}

fs::path home() {
  for (const char* name : {"HOME", "USERPROFILE"}) {
    if (auto path = variable(name)) return *path;
  }
  return {};
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Returns the paths of all entries of a folder, sorted.
std::vector<fs::path> contents(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) paths.push_back(at->path());
  std::ranges::sort(paths);
  return paths;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 20; ++i) text.append(i == 0 ? "" : ", ").append(names[i]);
  return names.empty() ? "nothing" : names.size() > 20 ? text + ", ..." : text;
}

Error not_there(std::string_view text, std::string message) {
  return {ErrorCode::not_found, std::move(message), std::string(text)};
}

// Returns whether a part of a name can be used as a file name, without leading to another folder.
bool is_name(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.find_first_of("/\\") == std::string_view::npos && part.find('\0') == std::string_view::npos;
}

std::string read_small(const fs::path& path) {
  std::string text(std::size_t{1} << 20, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return text;
}

// Finds a model in Ollama's store. The store has a manifest for each name and tag. The manifest lists layers. The layer with the model is a
// GGUF file in the folder `blobs`, under the name of its hash.
Result<fs::path> in_ollama(std::string_view text, std::string_view name) {
  fs::path store = variable("OLLAMA_MODELS").value_or(home() / ".ollama" / "models");
  if (!is_folder(store) && is_folder("/usr/share/ollama/.ollama/models")) store = "/usr/share/ollama/.ollama/models";
  const std::string_view wanted = name;  // as Ollama's own commands take it
  std::string_view tag = "latest";
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) tag = name.substr(colon + 1), name = name.substr(0, colon);
  std::string_view owner = "library";
  if (const std::size_t slash = name.find('/'); slash != std::string_view::npos) owner = name.substr(0, slash), name = name.substr(slash + 1);
  if (!is_name(owner) || !is_name(name) || !is_name(tag)) return not_there(text, "expected ollama:NAME, ollama:NAME:TAG or ollama:OWNER/NAME:TAG");
  const fs::path all = store / "manifests" / "registry.ollama.ai" / path_of(owner), manifest = all / path_of(name) / path_of(tag);
  std::error_code ignored;
  if (!fs::is_regular_file(manifest, ignored)) {
    std::vector<std::string> names;
    for (const fs::path& model : contents(all)) {
      for (const fs::path& own : contents(model)) names.push_back(fmt::format("{}:{}", text_of(model.filename()), text_of(own.filename())));
    }
    return not_there(text, fmt::format("Ollama's store {} has no such model; it has {}. Fetch it with: ollama pull {}", text_of(store), list_of(names), wanted));
  }
  const auto json = Json::parse(read_small(manifest));
  const Json* layers = json ? json->find("layers") : nullptr;
  if (layers == nullptr || layers->elements() == nullptr) return Error(ErrorCode::corrupt_file, "no manifest of Ollama", text_of(manifest));
  for (const Json& layer : *layers->elements()) {
    const Json *type = layer.find("mediaType"), *digest = layer.find("digest");
    if (type == nullptr || digest == nullptr || type->string() == nullptr || digest->string() == nullptr) continue;
    if (*type->string() != "application/vnd.ollama.image.model") continue;
    std::string blob = *digest->string();
    std::ranges::replace(blob, ':', '-');
    if (!is_name(blob)) break;
    const fs::path path = store / "blobs" / blob;
    if (fs::exists(path, ignored)) return path;
    return not_there(text, fmt::format("{} is missing: fetch the model again with: ollama pull {}", text_of(path), wanted));
  }
  return Error(ErrorCode::corrupt_file, "the manifest names no model file", text_of(manifest));
}

bool is_weights(const fs::path& path) {
  const std::string name = text_of(path.filename());
  return name.ends_with(".gguf") && name.find("mmproj") == std::string::npos;
}

// LM Studio keeps a folder for each publisher, with a folder for each model, which has the GGUF files.
Result<fs::path> in_lm_studio(std::string_view text, std::string_view name) {
  fs::path store = home() / ".lmstudio" / "models";
  if (!is_folder(store)) store = home() / ".cache" / "lm-studio" / "models";
  fs::path folder = store;
  std::string_view rest = name;
  for (int i = 0; i < 2; ++i) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (!is_name(rest.substr(0, slash))) return not_there(text, "expected lmstudio:PUBLISHER/MODEL or lmstudio:PUBLISHER/MODEL/FILE");
    folder /= path_of(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  std::vector<std::string> names;
  if (!is_folder(folder)) {
    for (const fs::path& publisher : contents(store)) {
      for (const fs::path& model : contents(publisher)) names.push_back(fmt::format("{}/{}", text_of(publisher.filename()), text_of(model.filename())));
    }
    return not_there(text, fmt::format("LM Studio's store {} has no such model; it has {}", text_of(store), list_of(names)));
  }
  std::vector<fs::path> files;
  for (const fs::path& file : contents(folder)) {
    const std::string own = text_of(file.filename());
    if (!is_weights(file) || (!rest.empty() && own != rest)) continue;
    const bool is_later_part = own.find("-of-") != std::string::npos && own.find("-00001-of-") == std::string::npos;
    if (!is_later_part) files.push_back(file), names.push_back(own);
  }
  if (files.size() == 1) return files.front();
  if (files.empty()) return not_there(text, fmt::format("{} has no such GGUF file", text_of(folder)));
  return not_there(text, fmt::format("{} has several models: add one of {}", text_of(folder), list_of(names)));
}

// The hub's cache has a folder for each model, with a folder for each version (snapshot). The file refs/main names the newest version.
Result<fs::path> in_hub_cache(std::string_view text, std::string_view name) {
  const fs::path store = variable("HF_HUB_CACHE").value_or(variable("HF_HOME").value_or(home() / ".cache" / "huggingface") / "hub");
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || !is_name(name.substr(0, slash)) || !is_name(name.substr(slash + 1))) {
    return not_there(text, "expected hf:ORGANISATION/MODEL");
  }
  const fs::path folder = store / path_of(fmt::format("models--{}--{}", name.substr(0, slash), name.substr(slash + 1)));
  if (!is_folder(folder)) {
    std::vector<std::string> names;
    for (const fs::path& model : contents(store)) {
      std::string own = text_of(model.filename());
      if (!own.starts_with("models--")) continue;
      own.erase(0, 8);
      const std::size_t at = std::min(own.find("--"), own.size());
      names.push_back(at == own.size() ? own : fmt::format("{}/{}", own.substr(0, at), own.substr(at + 2)));
    }
    return not_there(text, fmt::format("the hub's cache {} has no such model; it has {}. Fetch it with: hf download {}", text_of(store), list_of(names), name));
  }
  std::string version = read_small(folder / "refs" / "main");
  while (!version.empty() && (version.back() == '\n' || version.back() == ' ')) version.pop_back();
  fs::path snapshot = folder / "snapshots" / path_of(version);
  if (!is_name(version) || !is_folder(snapshot)) {
    const auto versions = contents(folder / "snapshots");
    if (versions.size() != 1) return not_there(text, fmt::format("{} has no version that refs/main names: fetch the model again", text_of(folder)));
    snapshot = versions.front();
  }
  std::error_code ignored;
  if (fs::exists(snapshot / "config.json", ignored)) return snapshot;
  std::vector<fs::path> files;
  std::ranges::copy_if(contents(snapshot), std::back_inserter(files), is_weights);
  if (files.size() == 1) return files.front();
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(text_of(file));
  return not_there(text, files.empty() ? fmt::format("{} has neither config.json nor a GGUF file", text_of(snapshot))
                                       : fmt::format("there are several GGUF files: give the path of one of {}", list_of(names)));
}

}  // namespace

Result<std::filesystem::path> model_place(std::string_view text) {
  const auto behind = [text](std::string_view start) { return text.substr(start.size()); };
  if (text.starts_with("ollama:")) return in_ollama(text, behind("ollama:"));
  if (text.starts_with("lmstudio:")) return in_lm_studio(text, behind("lmstudio:"));
  if (text.starts_with("hf:")) return in_hub_cache(text, behind("hf:"));
  return path_of(text);
}

Result<std::shared_ptr<const ModelSource>> open_named_model(std::string_view text) {
  const auto place = model_place(text);
  if (!place) return place.error();
  return open_model(*place);
}

}  // namespace tessera::tool
