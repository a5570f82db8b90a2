// Writes a model as a folder as hubs publish models: config.json, the tokenizer's files, and safetensors files. The inverse of opening one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera {

struct FolderOptions {
  // The type of matrices: F32, F16 or BF16. Without a type, matrices of these three keep theirs, and quantised ones become BF16.
  std::optional<DType> type = {};
  std::uint64_t shard_bytes = std::uint64_t{5} << 30;  // of the tensors of one safetensors file; a larger model becomes several files
  std::function<void(std::uint64_t bytes)> on_written = {};  // called when so many more bytes of tensors are written
  std::stop_token stop = {};
};

// The folder that is, or would be, written.
struct FolderSummary {
  struct File {
    std::string name;  // "model.safetensors"
    std::uint64_t tensors = 0, bytes = 0;
  };
  struct OfType {
    DType type;
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::string model_type;        // of config.json
  std::vector<File> files;       // of weights
  std::vector<OfType> types;
  std::uint64_t bytes = 0;       // of all tensors
  std::uint64_t rounded = 0;     // tensors whose numbers are rounded to another type
  std::string config;            // the text of config.json
};

// Returns the folder that write_folder() would write. Errors: unsupported, folders of no type that this library reads can say what the model
// is, or its tokenizer's steps are not known; those of reading.
[[nodiscard]] Result<FolderSummary> plan_folder(const ModelSource& model, const FolderOptions& options) noexcept;

// Writes the folder `path`, which must not exist, or must be an empty folder. It appears when it is complete: it is written under another
// name beside `path`, opened and compared with the model, and renamed. Memory: some MB, and the largest tensor whose rows change places a few
// times. Errors: those of plan_folder(); invalid_argument, `path` is there; io; cancelled. After an error nothing is left.
[[nodiscard]] Result<FolderSummary> write_folder(const ModelSource& model, const std::filesystem::path& path, const FolderOptions& options) noexcept;

}  // namespace tessera
