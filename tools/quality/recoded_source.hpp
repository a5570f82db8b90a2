// A model whose matrices get another format when they are read, as if a quantised file had been written: compares formats without files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

namespace tessera::quality {

// A source that passes on another source, but encodes the matrices of the layers and the token embeddings in another format when they are
// read. If a matrix's rows are not whole blocks of this format, the matrix gets the format that tessera-quantize would choose. Other
// tensors stay as they are.
class RecodedSource final : public ModelSource {
 public:
  RecodedSource(std::shared_ptr<const ModelSource> model, DType format);

  [[nodiscard]] const Settings& settings() const noexcept override { return model_->settings(); }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return tensors_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;
  [[nodiscard]] std::string called(std::string_view name) const override { return model_->called(name); }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override { return model_->memory_bytes() + tensors_.size() * sizeof(TensorInfo); }

 private:
  Status read_recoded(const TensorInfo& from, const TensorInfo& to, std::uint64_t offset, std::span<std::byte> out) const;
  std::shared_ptr<const ModelSource> model_;
  std::vector<TensorInfo> tensors_;  // in the order of model_->tensors()
};

}  // namespace tessera::quality
