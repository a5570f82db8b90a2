// Checks files that a program writes beside the model that it reads.
#pragma once

#include <filesystem>
#include <system_error>

#include <tessera/extend/files/model_file.hpp>

namespace tessera::tool {

// Returns whether writing `out` would overwrite a file of the model.
[[nodiscard]] inline bool is_part_of(const std::filesystem::path& out, const ModelFile& model) {
  for (const GgufFile& part : model.parts()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(out, part.source().name(), ignored)) return true;
  }
  return false;
}

// Does the same for a model at a path: a file, or a folder whose files must not be overwritten.
[[nodiscard]] inline bool is_part_of(const std::filesystem::path& out, const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::exists(out, ignored)) return false;
  if (std::filesystem::is_directory(model, ignored)) {
    return std::filesystem::equivalent(out.has_parent_path() ? out.parent_path() : ".", model, ignored);
  }
  const auto file = ModelFile::open(model);
  return file && is_part_of(out, *file);
}

}  // namespace tessera::tool
