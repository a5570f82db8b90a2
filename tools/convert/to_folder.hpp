// Writes a model as a folder with safetensors files, and shows the progress.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera::convert {

struct ToFolder {
  std::filesystem::path out;
  std::optional<DType> type;      // type of the matrices; nullopt: FolderOptions' default
  std::uint64_t shard_bytes = 0;  // 0: FolderOptions' default
  bool dry_run = false;           // print the sizes, and write nothing
  bool verbose = false;           // print config.json too
  const volatile std::sig_atomic_t* stop = nullptr;  // *stop is not 0: give up
};

// Writes the folder and prints what it has. Errors: those of write_folder(); cancelled.
[[nodiscard]] Status write_as_folder(const ModelSource& model, const ToFolder& options);

}  // namespace tessera::convert
