// Writes one safetensors file. The file appears under its name when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "files/replacement_file.hpp"
#include "files/safetensors/safetensors_types.hpp"

namespace tessera::detail {

class SafetensorsWriter {
 public:
  // Adds a tensor to the header. `dims`: outermost first.
  void add(std::string_view name, SafetensorsType type, std::span<const std::uint64_t> dims);
  // Creates the file and writes its header. After that, write() accepts the tensors' bytes, in the order of add().
  [[nodiscard]] Status begin(const std::filesystem::path& path);
  [[nodiscard]] Status write(std::span<const std::byte> bytes);
  // Gives the file its name. Error: invalid_state, not all bytes of the tensors were written.
  [[nodiscard]] Status finish();

 private:
  std::string header_ = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::uint64_t bytes_ = 0, written_ = 0;  // bytes of the tensors: declared by add(), and written
  std::unique_ptr<ReplacementFile> open_;
};

}  // namespace tessera::detail
