// Lists the tensors of safetensors files under the files' own names and types, for tessera-inspect. (A ModelSource does not: it lists the
// library's own tensors, each of which is made from one or several of the files' tensors.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera {

struct SafetensorsListing {
  struct Tensor {
    std::string name;
    std::string_view type;            // "BF16"
    std::vector<std::uint64_t> dims;  // outermost first
    std::uint64_t offset, bytes;      // place and size of the data in the file
    std::uint32_t part;               // index into `files`
  };
  std::vector<std::string> files;  // paths of the files
  std::vector<Tensor> tensors;     // in the order of (part, offset)
};

// Lists the tensors of a folder or of one file. The headers of the files are checked as when an engine is loaded. Errors: not_found, a file
// of the model is missing; unsupported; corrupt_file; io.
[[nodiscard]] Result<SafetensorsListing> list_safetensors(const std::filesystem::path& path) noexcept;

}  // namespace tessera
