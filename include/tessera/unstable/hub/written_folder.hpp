// Writes a model as a folder, in the form in which hubs publish models: config.json, the tokenizer's files, and safetensors files.
// open_model() can read such a folder.
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
  // The type of matrices in the folder: F32, F16 or BF16. nullopt: matrices of these three types keep theirs, and quantised matrices become
  // BF16.
  std::optional<DType> type = {};
  std::uint64_t shard_bytes = std::uint64_t{5} << 30;  // limit of the bytes of tensors in a safetensors file; a larger model becomes several files
  std::function<void(std::uint64_t bytes)> on_written = {};  // called with the bytes of tensors written since the last call
  std::stop_token stop = {};
};

// The contents of a folder that write_folder() has written, or that it would write (plan_folder()).
struct FolderSummary {
  struct File {
    std::string name;  // "model.safetensors"
    std::uint64_t tensors = 0, bytes = 0;
  };
  struct OfType {
    DType type;
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::string model_type;        // model_type in config.json
  std::vector<File> files;       // files of weights
  std::vector<OfType> types;
  std::uint64_t bytes = 0;       // bytes of all tensors
  std::uint64_t rounded = 0;     // tensors whose numbers are rounded to another type
  std::string config;            // the text of config.json
};

// Returns what write_folder() would write, without writing. Errors: unsupported, no model_type of config.json that this library reads can
// describe the model, or the steps of its tokenizer are not known; those of reading the model.
[[nodiscard]] Result<FolderSummary> plan_folder(const ModelSource& model, const FolderOptions& options) noexcept;

// Writes the folder `path`, which must not exist or must be an empty folder. It appears only when it is complete: the function writes a
// folder of another name beside `path`, opens it, compares it with the model, and renames it. Memory: some MB, and a few times the largest
// tensor whose rows change their order. Errors: those of plan_folder(); invalid_argument, `path` exists and is not an empty folder; io;
// cancelled. After an error no files are left.
[[nodiscard]] Result<FolderSummary> write_folder(const ModelSource& model, const std::filesystem::path& path, const FolderOptions& options) noexcept;

}  // namespace tessera
