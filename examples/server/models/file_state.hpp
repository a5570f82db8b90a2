// The state of a model's files: shows whether a model that could not be loaded has been changed since.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace server {

// Size and time of change of each file of a model. Two equal states: no file was changed, added or removed between them.
struct FileState {
  struct File {
    std::string name;              // relative to the model's folder
    std::uintmax_t size = 0;       // bytes
    std::int64_t changed = 0;      // ticks of the file system's clock
    auto operator<=>(const File&) const = default;
  };
  std::vector<File> files;         // in order of their names; empty: there is no file, or it cannot be looked at
  bool operator==(const FileState&) const = default;
};

// Looks at a model's file, at all parts of a GGUF file that is split (NAME-00001-of-00003.gguf), or at the files of a folder and of its
// folders, at most 4096 of them. Reads no file. An empty path, which the model inside the program has, gives an empty state.
[[nodiscard]] FileState file_state(const std::filesystem::path& model);

}  // namespace server
