// JoinedSource presents a model and draft heads from another file as one source, so that both are loaded like one model. The heads' layers
// are numbered after the model's layers. If the model's own file has layers of draft heads, these are left out. The settings are the
// model's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "heads/head_file.hpp"

namespace tessera::detail {

class JoinedSource final : public ModelSource {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const ModelSource>> make(std::shared_ptr<const ModelSource> model, std::shared_ptr<const HeadFile> heads);

  [[nodiscard]] const Settings& settings() const noexcept override { return model_->settings(); }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return infos_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override;
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override;
  [[nodiscard]] std::string called(std::string_view name) const override;
  [[nodiscard]] std::string wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const override;
  [[nodiscard]] Result<InputRounding> input_rounding(const TensorInfo& tensor) const noexcept override;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override;

 private:
  std::shared_ptr<const ModelSource> model_;
  std::shared_ptr<const HeadFile> heads_;
  std::vector<TensorInfo> infos_;             // the model's tensors, then the heads' tensors in the order of heads_->tensors
  std::vector<const TensorInfo*> own_;        // for each element of infos_: the tensor of model_ or of heads_->source
  std::deque<std::string> names_;             // names of the heads' tensors
  std::vector<std::uint32_t> by_name_;
};

}  // namespace tessera::detail
