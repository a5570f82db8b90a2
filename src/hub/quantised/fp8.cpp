#include "files/quantised/fp8.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

std::optional<Fp8ScaleType> fp8_scale_type(const Found& scales) noexcept {
  switch (scales.tensor->type) {
    case SafetensorsType::f32: return Fp8ScaleType::f32;
    case SafetensorsType::bf16: return Fp8ScaleType::bf16;
    case SafetensorsType::f16: return Fp8ScaleType::f16;
    case SafetensorsType::f8_e8m0:
    case SafetensorsType::u8: return Fp8ScaleType::e8m0;  // in MXFP8 of compressed-tensors the exponents have the type U8
    default: return std::nullopt;
  }
}

// Returns one dimension of the blocks of weights that share a scale. `size`: weights along this dimension of the matrix; `count`: scales
// along it; `configured`: the dimension that the configuration states, 0 if it states none. If the configured dimension fits `count`,
// returns it; otherwise size / count, if this is a whole number; otherwise 0.
std::uint64_t block_size(std::uint64_t size, std::uint64_t count, std::uint64_t configured) noexcept {
  if (count == 0) return 0;
  if (configured != 0 && (size - 1) / configured + 1 == count) return configured;
  return size % count == 0 ? size / count : 0;
}

}  // namespace

Status read_fp8_options(const Json& config, QuantisationOptions& options) {
  read_block(&config, "weight_block_size", options);
  for (const std::string_view key : {"fmt", "weight_format"}) {
    const std::string_view format = text_in(&config, key);
    if (!format.empty() && !format.starts_with("e4m3") && !format.starts_with("e5m2") && !format.starts_with("float8_")) return not_read(key, format);
  }
  // Default if config.json says nothing: inputs are rounded with a scale for each row, or for each block of a row.
  ActivationScheme scheme{.of = WeightKind::fp8, .to = RoundedInputs::fp8, .group = static_cast<std::uint32_t>(std::min<std::uint64_t>(options.block_inputs, UINT32_MAX))};
  const std::string_view how = text_in(&config, "activation_scheme");
  scheme.is_static = how == "static";
  if (scheme.is_static) scheme.group = 0;
  if (!how.empty() && how != "static" && how != "dynamic") scheme.refused = fmt::format("activation_scheme is \"{}\"", printable(how));
  options.activations.push_back(std::move(scheme));
  return {};
}

MadeMatrix fp8_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options) {
  const Found weight = look_up(folder, stem, ".weight");
  const bool is_e4m3 = weight && weight.tensor->type == SafetensorsType::f8_e4m3;
  if (!is_e4m3 && !(weight && weight.tensor->type == SafetensorsType::f8_e5m2)) return std::shared_ptr<const Matrix>();
  Found scales = look_up(folder, stem, ".weight_scale_inv");
  if (!scales) scales = look_up(folder, stem, ".weight_scale");
  if (!scales) scales = look_up(folder, stem, ".scale");  // DeepSeek's own checkpoints
  if (!scales || weight.tensor->dims.size() != 2 || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "weight_scale_inv or weight_scale belongs to a matrix of FP8");
  }
  const auto type = fp8_scale_type(scales);
  if (!type) return wrong_tensor(ErrorCode::unsupported, folder, scales, "scales of FP8 are F32, BF16, F16 or F8_E8M0");
  Fp8Layer layer{.outputs = weight.dim(0), .inputs = weight.dim(1), .block_outputs = block_size(weight.dim(0), scales.dim(0), options.block_outputs),
                 .block_inputs = block_size(weight.dim(1), scales.dim(1), options.block_inputs), .type = is_e4m3 ? Fp8Type::e4m3 : Fp8Type::e5m2,
                 .scale_type = *type, .weight = {}, .scales = {}};
  if (layer.block_outputs == 0 || layer.block_inputs == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, scales, fmt::format("{} x {} scales do not divide {} x {} weights", scales.dim(0), scales.dim(1), layer.outputs, layer.inputs));
  }
  return decoded_matrix(DType::bf16, {layer.outputs, layer.inputs}, {weight, scales},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.weight = bytes[0], layer.scales = bytes[1];
                          TESSERA_TRY_STATUS(check_fp8(layer));
                          return decode_fp8(layer, DType::bf16, first, rows, out);
                        });
}

}  // namespace tessera::detail::hub
