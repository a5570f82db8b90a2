// A ModelFile is a GGUF model on disk: one file, or all parts of a split model ("name-00001-of-00003.gguf", keys split.no, split.count,
// split.tensors.count). The parts appear as one list of tensors. settings() and metadata() belong to the first part.
//
//   auto file = tessera::ModelFile::open("model.gguf");
//   if (!file) return report(file.error());
//   for (const tessera::TensorInfo& tensor : file->tensors()) std::puts(std::string(tensor.name).c_str());
//   auto engine = tessera::Engine::load(*file);
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf.hpp>

namespace tessera {

// A cheap handle: copies share the parsed headers. Every function may be called from any thread.
class ModelFile final : public ModelSource {
 public:
  ModelFile() noexcept = default;  // an empty handle (docs/headers.md)
  // Opens the file. If the file is the first part of a split model, opens the other parts beside it too. Errors, whose messages name the
  // part or the tensor: `path` is a later part; a part is missing; a tensor occurs twice; a count is wrong; cancelled, `stop` was
  // requested.
  [[nodiscard]] static Result<ModelFile> open(const std::filesystem::path& path, const std::stop_token& stop = {}) noexcept;
  // Opens a model from sources: element i of `parts` is part i of the model.
  [[nodiscard]] static Result<ModelFile> from_sources(std::span<const std::shared_ptr<ByteSource>> parts) noexcept;
  [[nodiscard]] static Result<ModelFile> from_source(std::shared_ptr<ByteSource> source) noexcept;
  // Reads the model from the caller's bytes. The caller must keep the bytes alive and unchanged while the ModelFile is used. An engine that
  // was loaded from the ModelFile does not need the bytes.
  [[nodiscard]] static Result<ModelFile> from_memory(std::span<const std::byte> bytes) noexcept;

  [[nodiscard]] const Settings& settings() const noexcept override;   // settings of the first part
  [[nodiscard]] const GgufFile& metadata() const noexcept;            // header of the first part, by GGUF's keys
  [[nodiscard]] std::span<const GgufFile> parts() const noexcept;
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override;  // tensors of all parts
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override;  // bytes of memory of the parsed headers

  // Reads bytes [offset, offset + out.size()) of the tensor's data.
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;

 private:
  struct State;
  explicit ModelFile(std::shared_ptr<const State> state) noexcept;
  static Result<ModelFile> from_parts(std::vector<GgufFile> parts);
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
