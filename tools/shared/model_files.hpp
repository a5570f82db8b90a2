// Files that a program writes beside the model that it reads.
#pragma once

#include <filesystem>
#include <system_error>

#include <tessera/files/model_file.hpp>

namespace tessera::tool {

// Returns whether writing `out` would destroy a part of the model.
[[nodiscard]] inline bool is_part_of(const std::filesystem::path& out, const ModelFile& model) {
  for (const GgufFile& part : model.parts()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(out, part.source().name(), ignored)) return true;
  }
  return false;
}

}  // namespace tessera::tool
