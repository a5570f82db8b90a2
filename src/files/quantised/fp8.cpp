#include "files/quantised/fp8.hpp"

#include <array>
#include <limits>

#include "core/error.hpp"
#include "core/float8.hpp"
#include "formats/quants/fp4.hpp"

namespace tessera::detail {
namespace {

float fp8_value(Fp8Type type, std::byte bits) noexcept {
  const auto byte = static_cast<std::uint8_t>(bits);
  if (type == Fp8Type::e5m2) return f16_to_f32(static_cast<std::uint16_t>(byte << 8));
  return (byte & 0x7fu) == 0x7fu ? std::numeric_limits<float>::quiet_NaN() : e4m3_to_f32(byte);
}

float fp8_scale(const Fp8Layer& layer, std::uint64_t index) noexcept {
  switch (layer.scale_type) {
    case Fp8ScaleType::f16:
      return load_scale(ScaleType::f16, layer.scales.data(), index);
    case Fp8ScaleType::bf16:
      return load_scale(ScaleType::bf16, layer.scales.data(), index);
    case Fp8ScaleType::e8m0: {
      const auto exponent = static_cast<unsigned>(layer.scales[index]);
      return exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : 2.0f * formats::detail::half_e8m0(exponent);
    }
    case Fp8ScaleType::f32:
      break;
  }
  return load_scale(ScaleType::f32, layer.scales.data(), index);
}

std::uint64_t fp8_scale_bytes(Fp8ScaleType type) noexcept {
  return type == Fp8ScaleType::f32 ? 4 : type == Fp8ScaleType::e8m0 ? 1 : 2;
}

}  // namespace

Status check_fp8(const Fp8Layer& layer) noexcept {
  return guard([&]() -> Status {
    if (layer.outputs == 0 || layer.inputs == 0 || layer.block_outputs == 0 || layer.block_inputs == 0) {
      return make_error(ErrorCode::corrupt_file, "FP8 weights of {} x {} in blocks of {} x {}: none may be 0",
                        layer.outputs, layer.inputs, layer.block_outputs, layer.block_inputs);
    }
    TESSERA_TRY_STATUS(check_bytes("weight", layer.weight, size_product({layer.outputs, layer.inputs})));
    return check_bytes("the scale of the weight", layer.scales,
                       size_product({(layer.outputs - 1) / layer.block_outputs + 1,
                                     (layer.inputs - 1) / layer.block_inputs + 1, fp8_scale_bytes(layer.scale_type)}));
  });
}

Status decode_fp8(const Fp8Layer& layer, DType form, std::uint64_t first, std::uint64_t rows,
                  std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    if (form != DType::f32 && form != DType::bf16) {
      return make_error(ErrorCode::invalid_argument, "FP8 weights become F32 or BF16, not {}", to_string(form));
    }
    TESSERA_TRY_STATUS(check_rows({layer.outputs, layer.inputs, layer.inputs}, first, rows, form, out));
    std::array<float, 256> floats;
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = fp8_value(layer.type, static_cast<std::byte>(i));
    const std::uint64_t scales_a_row = (layer.inputs - 1) / layer.block_inputs + 1;
    std::byte* to = out.data();
    for (std::uint64_t output = first; output < first + rows; ++output) {
      const std::byte* const row = layer.weight.data() + output * layer.inputs;
      for (std::uint64_t block = 0; block < scales_a_row; ++block) {
        const float scale = fp8_scale(layer, output / layer.block_outputs * scales_a_row + block);
        const std::uint64_t begin = block * layer.block_inputs;
        const std::uint64_t end = layer.inputs - begin < layer.block_inputs ? layer.inputs : begin + layer.block_inputs;
        for (std::uint64_t input = begin; input < end; ++input) {
          const float value = floats[static_cast<std::size_t>(row[input])] * scale;
          if (form == DType::bf16) {
            formats::detail::store_u16(to, f32_to_bf16(value));
            to += 2;
          } else {
            std::memcpy(to, &value, sizeof value);
            to += sizeof value;
          }
        }
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
