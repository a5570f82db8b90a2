#include <array>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/matrix.hpp"

namespace tessera::detail::hub {

namespace {

class PlainMatrix final : public Matrix {
 public:
  PlainMatrix(DType form, std::uint32_t tensor, const SafetensorsTensor& from) : form_(form), tensor_{tensor} {
    dims_.assign(from.dims.begin(), from.dims.end());
  }
  [[nodiscard]] DType form() const noexcept override { return form_; }
  [[nodiscard]] Status read(const SafetensorsFolder& folder, std::uint64_t offset, std::span<std::byte> out) const override {
    return folder.read(folder.tensors()[tensor_[0]], offset, out);
  }
  [[nodiscard]] std::span<const std::uint32_t> tensors() const noexcept override { return tensor_; }

 private:
  DType form_;
  std::array<std::uint32_t, 1> tensor_;
};

std::optional<DType> dtype_of(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::f32: return DType::f32;
    case SafetensorsType::f16: return DType::f16;
    case SafetensorsType::bf16: return DType::bf16;
    default: return std::nullopt;
  }
}

}  // namespace

Result<std::shared_ptr<const Matrix>> plain_matrix(const SafetensorsFolder& folder, const SafetensorsTensor& tensor) {
  const auto form = dtype_of(tensor.type);
  if (!form) {
    return error_at(ErrorCode::unsupported, folder.file_name(tensor.part), "tensor {}: its type is {}; F32, F16 and BF16 can be loaded{}",
                    printable(tensor.name), to_string(tensor.type),
                    tensor.type == SafetensorsType::f64 ? ": save the model in one of them (in Python: model.to(torch.float32).save_pretrained(new_folder))" : "");
  }
  const auto index = static_cast<std::uint32_t>(&tensor - folder.tensors().data());
  return std::shared_ptr<const Matrix>(std::make_shared<const PlainMatrix>(*form, index, tensor));
}

}  // namespace tessera::detail::hub
