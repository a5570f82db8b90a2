// The state of a model's files: shows whether the files have changed since a load of the model failed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace server {

// Size and time of change of each file of a model. If two states are equal, no file was changed, added or removed between them.
struct FileState {
  struct File {
    std::string name;              // relative to the model's folder
    std::uintmax_t size = 0;       // bytes
    std::int64_t changed = 0;      // ticks of the file system's clock
    auto operator<=>(const File&) const = default;
  };
  std::vector<File> files;         // in order of their names; empty: there is no file, or its state cannot be read
  bool operator==(const FileState&) const = default;
};

// Returns the state of the files that a model consists of: one file, all parts of a split GGUF file (NAME-00001-of-00003.gguf), or the
// files in a folder and its folders (at most 4096 files). Reads no file's content. If the path is empty (the model is inside the program),
// returns an empty state.
[[nodiscard]] FileState file_state(const std::filesystem::path& model);

}  // namespace server
