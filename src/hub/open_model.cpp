#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "files/source_of_file.hpp"
#include "hub/hub_model.hpp"
#include "os/file.hpp"

namespace tessera {

namespace {

namespace fs = std::filesystem;
using OpenedModel = Result<std::shared_ptr<const ModelSource>>;

bool is_there(const fs::path& path) {
  std::error_code problem;
  return fs::exists(path, problem);
}

// Files of a folder besides JSON.
struct FolderWeights {
  bool has_safetensors = false;
  std::vector<std::string> gguf;  // without later parts of split models, and without projectors (parts of models that read images)
};

FolderWeights weights_in(const fs::path& folder) {
  constexpr std::size_t kMostEntries = 65536;
  FolderWeights weights;
  std::vector<std::string> names;
  if (os::names_in_folder(folder, kMostEntries, names) != 0) return weights;  // the code that reads the folder next reports the error
  for (std::string& name : names) {
    if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) weights.has_safetensors = true;
    const bool is_later_part = name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (name.ends_with(".gguf") && !name.starts_with("mmproj") && !is_later_part) weights.gguf.push_back(std::move(name));
  }
  std::ranges::sort(weights.gguf);
  return weights;
}

// Opens a folder: the only GGUF file of a folder without safetensors files, otherwise the folder as hubs publish models.
OpenedModel open_folder(const fs::path& folder, const std::stop_token& stop) {
  const FolderWeights weights = weights_in(folder);
  if (weights.has_safetensors || weights.gguf.empty()) return detail::hub::HubModel::open(folder, stop);
  if (weights.gguf.size() == 1) return detail::source_of_file(folder / os::path_of(weights.gguf.front()), stop);
  std::string names;
  for (std::size_t i = 0; i < weights.gguf.size() && i < 20; ++i) names.append(i == 0 ? "" : ", ").append(detail::printable(weights.gguf[i]));
  return detail::error_at(ErrorCode::invalid_argument, os::text_of(folder), "the folder has several GGUF files: give the path of one of {}", names);
}

// Returns whether the path is a file of a hub's folder. (Then the whole folder is opened.)
bool is_in_folder(const fs::path& path) {
  const std::string name = os::text_of(path.filename());
  return name == "config.json" || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

}  // namespace

// Opens a folder or a file. To add another kind of folder, recognise it here by the files in it.
OpenedModel open_model(const fs::path& path, const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> OpenedModel {
    std::error_code problem;
    if (fs::is_directory(path, problem)) return open_folder(path, stop);
    if (!is_in_folder(path) || !is_there(path)) return detail::source_of_file(path, stop);
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (is_there(folder / "config.json")) return detail::hub::HubModel::open(folder, stop);
    return detail::error_at(ErrorCode::not_found, os::text_of(path),
                            "a safetensors file has tensors only, and there is no config.json beside it: download config.json and the tokenizer's "
                            "files too, and open the folder");
  });
}

}  // namespace tessera
