// Reads matrices of 4-bit floats: NVFP4 (compressed-tensors, ModelOpt) and MXFP4 (compressed-tensors, and the experts of gpt-oss).
#include "files/quantised/fp4.hpp"

#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

DecodeRows mxfp4_rows(Fp4Rows layer) {
  return [layer](std::span<const Bytes> from, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
    layer.weights = from[0], layer.scales = from[1];
    TESSERA_TRY_STATUS(check_mxfp4(layer));
    return decode_mxfp4(layer, {first, rows}, out);
  };
}

}  // namespace

MadeMatrix nvfp4_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions&) {
  Found weight = look_up(folder, stem, ".weight_packed");
  const bool is_compressed = static_cast<bool>(weight);
  if (!is_compressed) weight = look_up(folder, stem, ".weight");
  const Found scales = look_up(folder, stem, ".weight_scale");
  if (!weight || weight.tensor->type != SafetensorsType::u8 || !scales || scales.tensor->type != SafetensorsType::f8_e4m3) return std::shared_ptr<const Matrix>();
  const Found whole = look_up(folder, stem, is_compressed ? ".weight_global_scale" : ".weight_scale_2");
  if (!whole || whole.tensor->type != SafetensorsType::f32 || whole.tensor->bytes != 4 || weight.tensor->dims.size() != 2) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "weight_scale and a scale of the whole matrix (one F32 number) belong to NVFP4");
  }
  TESSERA_TRY(const Bytes bytes, bytes_of(folder, whole));
  float factor = 0.0f;
  std::memcpy(&factor, bytes.data(), 4);
  if (is_compressed) factor = 1.0f / factor;
  if (!std::isfinite(factor) || factor <= 0.0f) return wrong_tensor(ErrorCode::corrupt_file, folder, whole, "it is not a positive number");
  Fp4Rows layer{.rows = weight.dim(0), .inputs = weight.dim(1) * 2, .weights = {}, .scales = {}};
  return decoded_matrix(DType::nvfp4, {layer.rows, layer.inputs}, {weight, scales, whole},
                        [layer](std::span<const Bytes> from, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.weights = from[0], layer.scales = from[1];
                          TESSERA_TRY_STATUS(check_nvfp4(layer));
                          return decode_nvfp4(layer, {first, rows}, out);
                        }, factor);
}

MadeMatrix mxfp4_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions&) {
  const Found weight = look_up(folder, stem, ".weight_packed"), scales = look_up(folder, stem, ".weight_scale");
  if (!weight || weight.tensor->type != SafetensorsType::u8) return std::shared_ptr<const Matrix>();
  const bool is_e8m0 = scales && (scales.tensor->type == SafetensorsType::u8 || scales.tensor->type == SafetensorsType::f8_e8m0);
  if (!is_e8m0 || weight.tensor->dims.size() != 2 || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "weight_scale belongs to 4-bit floats, of U8 or F8_E8M0 (MXFP4) or F8_E4M3 (NVFP4)");
  }
  const std::uint64_t outputs = weight.dim(0), inputs = weight.dim(1) * 2;
  return decoded_matrix(DType::mxfp4, {outputs, inputs}, {weight, scales}, mxfp4_rows({.rows = outputs, .inputs = inputs, .weights = {}, .scales = {}}));
}

// Makes the matrices of one kind of all experts (gpt-oss). `stem` is like "....experts.down_proj".
MadeMatrix mxfp4_experts(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions&) {
  const Found weight = look_up(folder, stem, "_blocks"), scales = look_up(folder, stem, "_scales");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!scales || weight.tensor->dims.size() != 4 || weight.dim(3) != 16 || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "blocks of MXFP4 are [experts, outputs, inputs / 32, 16], and scales belong to them");
  }
  const std::uint64_t experts = weight.dim(0), outputs = weight.dim(1), inputs = weight.dim(2) * 32;
  return decoded_matrix(DType::mxfp4, {experts, outputs, inputs}, {weight, scales},
                        mxfp4_rows({.rows = experts * outputs, .inputs = inputs, .weights = {}, .scales = {}}));
}

}  // namespace tessera::detail::hub
