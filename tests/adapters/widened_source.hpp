// A model whose matrices are all F32, so that a merged one is rounded to nothing coarser.
#pragma once

#include <tessera/extend/formats/rows.hpp>

#include "adapters/adapters.hpp"

namespace tessera::test {

class WidenedSource final : public ModelSource {
 public:
  explicit WidenedSource(std::shared_ptr<const ModelSource> model) : model_(std::move(model)) {
    for (TensorInfo info : model_->tensors()) {
      const auto block = formats::block_of(info.dtype);
      info.bytes = info.bytes / block->bytes * block->values * sizeof(float);
      info.dtype = DType::f32;
      infos_.push_back(info);
    }
  }
  [[nodiscard]] const Settings& settings() const noexcept override { return model_->settings(); }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return infos_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override {
    const TensorInfo* own = model_->find_tensor(name);
    return own == nullptr ? nullptr : &infos_[static_cast<std::size_t>(own - model_->tensors().data())];
  }
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    const TensorInfo& own = model_->tensors()[static_cast<std::size_t>(&tensor - infos_.data())];
    std::vector<std::byte> bytes(own.bytes);
    std::vector<float> values(tensor.bytes / sizeof(float));
    if (auto ok = model_->read(own, 0, bytes); !ok) return ok;
    if (auto ok = formats::decode_row(own.dtype, bytes, values); !ok) return ok;
    std::memcpy(out.data(), std::as_bytes(std::span(values)).data() + offset, out.size());
    return {};
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override { return model_->memory_bytes(); }

 private:
  std::shared_ptr<const ModelSource> model_;
  std::vector<TensorInfo> infos_;
};

}  // namespace tessera::test
