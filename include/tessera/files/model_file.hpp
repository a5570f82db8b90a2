// A GGUF model: one file, or the parts of a split one ("name-00001-of-00003.gguf", keys split.no, split.count,
// split.tensors.count), as one list of tensors. Metadata is the first part's.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf.hpp>

namespace tessera {

class ModelFile final : public ModelSource {
 public:
  ModelFile() noexcept = default;  // an empty handle (docs/headers.md)
  // Opens the file and, if it is the first part of a split model, its siblings. Another part than the first, a missing
  // part, a tensor that stands twice or a wrong count is an error that says which. `stop` ends it with
  // ErrorCode::cancelled.
  [[nodiscard]] static Result<ModelFile> open(const std::filesystem::path& path, const std::stop_token& stop = {}) noexcept;
  // The same from sources, parts in order.
  [[nodiscard]] static Result<ModelFile> from_sources(std::span<const std::shared_ptr<ByteSource>> parts) noexcept;
  [[nodiscard]] static Result<ModelFile> from_source(std::shared_ptr<ByteSource> source) noexcept;
  // The bytes stay the caller's, alive and unchanged for as long as the ModelFile is used (loading an engine from it
  // copies what it needs).
  [[nodiscard]] static Result<ModelFile> from_memory(std::span<const std::byte> bytes) noexcept;

  [[nodiscard]] const Settings& settings() const noexcept override;  // of the first part
  [[nodiscard]] const GgufFile& metadata() const noexcept;            // likewise, by GGUF's keys
  [[nodiscard]] std::span<const GgufFile> parts() const noexcept;
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override;  // of all parts
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override;  // what the parsed headers hold in memory

  // Reads part of a tensor's data: [offset, offset + out.size()) of its bytes. Thread-safe.
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;

 private:
  struct State;
  explicit ModelFile(std::shared_ptr<const State> state) noexcept;
  static Result<ModelFile> from_parts(std::vector<GgufFile> parts);
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
