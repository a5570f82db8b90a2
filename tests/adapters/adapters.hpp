// The adapters of tests/golden/data/adapters, which PEFT wrote for models of tests/golden/data/folders.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter_base.hpp"
#include "adapters/adapter_file.hpp"
#include "adapters/merged_source.hpp"
#include "hub/folder.hpp"

namespace tessera::test {

inline std::filesystem::path adapter_folder(std::string_view name) { return golden_dir() / "adapters" / name; }

// A line of manifest.txt: logits of a model with adapters, each with its scale.
struct AdapterGolden {
  std::string name, base;
  std::size_t first_row = 0;
  float tolerance = 0.0f;
  std::vector<std::pair<std::string, float>> adapters;
};

// Calls read(golden, words) for each line of a list in data/adapters, after name, base, first_row and tolerance were read.
template <class Read>
std::vector<AdapterGolden> listed_goldens(std::string_view list, Read read) {
  std::ifstream lines(golden_dir() / "adapters" / list);
  std::vector<AdapterGolden> goldens;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    AdapterGolden golden;
    std::istringstream words(line);
    words >> golden.name >> golden.base >> golden.first_row >> golden.tolerance;
    read(golden, words);
    goldens.push_back(golden);
  }
  return goldens;
}

inline std::vector<AdapterGolden> adapter_goldens() {
  return listed_goldens("manifest.txt", [](AdapterGolden& golden, std::istream& words) {
    for (std::string use; words >> use;) {
      const std::size_t colon = use.rfind(':');
      golden.adapters.emplace_back(use.substr(0, colon), std::stof(use.substr(colon + 1)));
    }
  });
}

// Returns the goldens of the adapters in GGUF, which tests/golden/adapter_gguf.py made from PEFT's. Their bases are GGUF files.
inline std::vector<AdapterGolden> gguf_adapter_goldens() {
  return listed_goldens("gguf.txt", [](AdapterGolden& golden, std::istream& words) {
    float scale = 0.0f;
    words >> scale;
    golden.base += ".gguf";
    golden.adapters.emplace_back(golden.name + ".gguf", scale);
  });
}

// A model and the facts of it that adapters are read for.
class OpenedBase {
 public:
  explicit OpenedBase(const std::filesystem::path& path) : OpenedBase(must(open_model(path))) {}
  explicit OpenedBase(std::shared_ptr<const ModelSource> model)
      : source(std::move(model)), tensors(detail::adapted_tensors(*source)), base(detail::adapter_base_of(*source, tensors)) {}
  OpenedBase(const OpenedBase&) = delete;
  OpenedBase& operator=(const OpenedBase&) = delete;

  [[nodiscard]] Result<detail::AdapterFile> read(const std::filesystem::path& path) const { return detail::read_adapter(path, base, {}); }
  [[nodiscard]] std::string problem(const std::filesystem::path& path) const {
    const auto file = read(path);
    return file ? "" : file.error().text();
  }

  std::shared_ptr<const ModelSource> source;
  std::vector<detail::AdaptedTensor> tensors;
  detail::AdapterBase base;
};

// A folder of its own for a test, which is removed at the end. It may begin as a copy of an adapter.
class AdapterCopy {
 public:
  explicit AdapterCopy(std::string_view name = {}) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / ("tessera-adapter-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    if (name.empty()) {
      std::filesystem::create_directory(path_);
    }
    else {
      std::filesystem::copy(adapter_folder(name), path_);
    }
  }
  ~AdapterCopy() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  AdapterCopy(const AdapterCopy&) = delete;
  AdapterCopy& operator=(const AdapterCopy&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  void write(std::string_view file, std::string_view text) const {
    std::filesystem::remove(path_ / file);
    std::ofstream(path_ / file, std::ios::binary) << text;
  }
  // Replaces the first `from` of a file, which must have it.
  void replace(std::string_view file, std::string_view from, std::string_view to) const {
    std::string text = text_of_file(path_ / file);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    write(file, text);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera::test
