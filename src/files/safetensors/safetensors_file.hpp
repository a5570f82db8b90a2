// One safetensors file (specification: github.com/huggingface/safetensors). Memory whose size the file states is allocated only
// after all checks. All values of a file that was read are safe to use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>

#include <tessera/extend/files/byte_source.hpp>

#include "files/safetensors/safetensors_header.hpp"

namespace tessera::detail {

// One file's header. A cheap, immutable handle: copies share the header.
//
//   auto file = SafetensorsFile::read(*open_file("model.safetensors"));
//   for (const SafetensorsTensor& tensor : file->tensors()) std::printf("%.*s\n", int(tensor.name.size()),
//   tensor.name.data());
class SafetensorsFile {
 public:
  SafetensorsFile() noexcept = default;  // an empty handle (docs/headers.md)
  // Reads and checks the header. Errors: corrupt_file; unsupported; io; cancelled, by `stop`.
  [[nodiscard]] static Result<SafetensorsFile> read(std::shared_ptr<ByteSource> source,
                                                    const std::stop_token& stop = {}) noexcept;

  [[nodiscard]] std::uint64_t header_bytes() const noexcept;  // bytes of the file before the data
  [[nodiscard]] std::uint64_t memory_bytes()
      const noexcept;  // bytes of memory that this object holds, without the source
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const noexcept;          // in the order of their data
  [[nodiscard]] std::span<const SafetensorsNote> notes() const noexcept;              // `__metadata__`, in file order
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const noexcept;  // nullptr if absent

 private:
  struct State;
  explicit SafetensorsFile(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera::detail
