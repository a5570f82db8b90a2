// Folders of models for tests: those of tests/golden, and copies of them that a test changes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "engine/models.hpp"

namespace tessera::test {

inline std::filesystem::path golden_folder(std::string_view name) { return golden_dir() / "folders" / name; }

inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A copy of a golden folder, which is removed at the end.
class ChangedFolder {
 public:
  explicit ChangedFolder(std::string_view name) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / ("tessera-hub-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::copy(golden_folder(name), path_);
  }
  ~ChangedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ChangedFolder(const ChangedFolder&) = delete;
  ChangedFolder& operator=(const ChangedFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  void write(std::string_view file, std::string_view text) { std::ofstream(path_ / file, std::ios::binary) << text; }
  // Replaces the first `from` of a file, which must have it.
  void replace(std::string_view file, std::string_view from, std::string_view to) {
    std::string text = text_of_file(path_ / file);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    write(file, text);
  }

 private:
  std::filesystem::path path_;
};

inline std::string problem(const std::filesystem::path& folder) {
  const auto engine = Engine::load(folder, {.tokenizer = TokenizerUse::none});
  return engine ? "" : engine.error().text();
}

}  // namespace tessera::test
