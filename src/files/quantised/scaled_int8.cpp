#include "files/quantised/scaled_int8.hpp"

#include "core/error.hpp"

namespace tessera::detail {

Status check_scaled_int8(const ScaledInt8Layer& layer) noexcept {
  return guard([&]() -> Status {
    if (layer.outputs == 0 || layer.inputs == 0) {
      return make_error(ErrorCode::corrupt_file, "weights of 8 bits of {} x {}: none may be 0", layer.outputs,
                        layer.inputs);
    }
    TESSERA_TRY_STATUS(check_bytes("weight", layer.weight, size_product({layer.outputs, layer.inputs})));
    return check_bytes("SCB", layer.scb, size_product({layer.outputs, sizeof(float)}));
  });
}

Status decode_scaled_int8(const ScaledInt8Layer& layer, std::uint64_t first, std::uint64_t rows,
                          std::span<std::byte> out) noexcept {
  constexpr float kPart = 7.874015718698502e-3f;  // bitsandbytes' constant for 1/127
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_rows({layer.outputs, layer.inputs, layer.inputs}, first, rows, DType::f32, out));
    std::byte* to = out.data();
    for (std::uint64_t output = first; output < first + rows; ++output) {
      const float scale = load_scale(ScaleType::f32, layer.scb.data(), output);
      const std::byte* const row = layer.weight.data() + output * layer.inputs;
      for (std::uint64_t input = 0; input < layer.inputs; ++input, to += sizeof(float)) {
        const float value = static_cast<float>(static_cast<std::int8_t>(row[input])) * scale * kPart;
        std::memcpy(to, &value, sizeof value);
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
