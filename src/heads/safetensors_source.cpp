// The tensors of a folder's safetensors files as a ModelSource that has no settings.
#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "files/no_settings.hpp"
#include "files/safetensors/safetensors_folder.hpp"
#include "files/sorted_names.hpp"
#include "heads/readers.hpp"

namespace tessera::detail::heads {

namespace {

// Returns the format of a tensor as a DType (the values of DType are ggml's numbers). If the format is not a weight format of the library,
// the result is a DType without a name.
DType dtype_of(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::f32: return DType::f32;
    case SafetensorsType::f16: return DType::f16;
    case SafetensorsType::bf16: return DType::bf16;
    case SafetensorsType::i64: return static_cast<DType>(27);
    case SafetensorsType::f64: return static_cast<DType>(28);
    case SafetensorsType::i32: return static_cast<DType>(26);
    case SafetensorsType::i16: return static_cast<DType>(25);
    default: return static_cast<DType>(24);  // bytes
  }
}

class SafetensorsSource final : public ModelSource {
 public:
  explicit SafetensorsSource(SafetensorsFolder folder) : folder_(std::move(folder)) {
    for (const SafetensorsTensor& tensor : folder_.tensors()) {
      TensorInfo info{.name = tensor.name,
                      .dtype = dtype_of(tensor.type),
                      .n_dims = static_cast<std::uint32_t>(std::min<std::size_t>(tensor.dims.size(), 4)),
                      .dims = {1, 1, 1, 1},
                      .offset = tensor.offset,
                      .bytes = tensor.bytes,
                      .part = tensor.part};
      // If a tensor has more than four dimensions, its last dimension becomes 0. No role has such a dimension, so the tensor is refused
      // later.
      for (std::size_t i = 0; i < info.n_dims; ++i) info.dims[i] = tensor.dims[tensor.dims.size() - 1 - i];
      for (std::size_t i = 4; i < tensor.dims.size(); ++i) info.dims[3] = 0;
      infos_.push_back(info);
    }
    by_name_ = sorted_indices(infos_, [](const TensorInfo& info) { return info.name; });
  }

  [[nodiscard]] const Settings& settings() const noexcept override { return settings_; }
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return infos_; }
  [[nodiscard]] const TensorInfo* find_tensor(std::string_view name) const noexcept override {
    return find_sorted(infos_, by_name_, name, [](const TensorInfo& info) { return info.name; });
  }
  [[nodiscard]] Status read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept override {
    return folder_.read(folder_.tensors()[static_cast<std::size_t>(&tensor - infos_.data())], offset, out);
  }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept override {
    return folder_.memory_bytes() + sizeof *this + infos_.capacity() * sizeof(TensorInfo) + by_name_.capacity() * sizeof(std::uint32_t);
  }

 private:
  NoSettings settings_;
  SafetensorsFolder folder_;
  std::vector<TensorInfo> infos_;  // one for each element of folder_.tensors()
  std::vector<std::uint32_t> by_name_;
};

}  // namespace

Result<std::shared_ptr<const ModelSource>> safetensors_source(const std::filesystem::path& folder, const std::stop_token& stop) {
  TESSERA_TRY(SafetensorsFolder opened, SafetensorsFolder::open(folder, stop));
  return std::shared_ptr<const ModelSource>(std::make_shared<SafetensorsSource>(std::move(opened)));
}

}  // namespace tessera::detail::heads
