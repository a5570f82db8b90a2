// A folder of safetensors files, as model hubs publish models: one file, or several files (shards) with an index that says which file has
// which tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

#include "files/safetensors/safetensors_types.hpp"

namespace tessera::detail {

// The tensors of a model in safetensors files. A cheap, immutable handle: copies share the headers. The files stay open. Threads: any
// function may be called from several threads at once.
//
//   auto folder = SafetensorsFolder::open("llama-3.2-1b");
//   const SafetensorsTensor* norm = folder->find("model.norm.weight");
//   std::vector<std::byte> values(norm->bytes);
//   auto done = folder->read(*norm, 0, values);
class SafetensorsFolder {
 public:
  // A folder beside the model's, such as one of sentence-transformers' modules. Its tensors get a prefix.
  struct Module {
    std::filesystem::path folder;
    std::string prefix;
  };

  SafetensorsFolder() noexcept = default;  // an empty handle (docs/headers.md)
  // Opens the model of a folder, or one .safetensors file by its own path, and checks the headers of all files. In a folder, opens the first
  // of these that exists: model.safetensors; the files that model.safetensors.index.json names; the files of another index
  // (*.safetensors.index.json); all parts of NAME-00001-of-0000N.safetensors; the only *.safetensors. Ignores all other files.
  // Errors (the message says what to download or to run): not_found, a file of the model is missing; unsupported, the folder has files of
  // another kind (PyTorch's, GGUF); corrupt_file; io; cancelled, by `stop`.
  [[nodiscard]] static Result<SafetensorsFolder> open(const std::filesystem::path& path, const std::stop_token& stop = {},
                                                      std::span<const Module> modules = {}) noexcept;

  // Returns the tensors of all files, in the order of (part, offset).
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const noexcept;
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const noexcept;  // nullptr if absent
  // Reads bytes [offset, offset + out.size()) of a tensor's data. Precondition: `tensor` is an element of tensors().
  [[nodiscard]] Status read(const SafetensorsTensor& tensor, std::uint64_t offset,
                            std::span<std::byte> out) const noexcept;

  [[nodiscard]] std::uint32_t parts() const noexcept;  // number of files that have the tensors
  [[nodiscard]] std::string file_name(
      std::uint32_t part) const;  // the file's path, for messages; empty if there is no such part
  [[nodiscard]] std::uint64_t memory_bytes()
      const noexcept;  // bytes of memory that this object holds, without the open files

 private:
  struct State;
  explicit SafetensorsFolder(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera::detail
