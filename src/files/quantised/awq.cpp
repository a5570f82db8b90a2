#include "files/quantised/awq.hpp"

#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr unsigned kNibbleOfOutput[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // the inverse of 0, 2, 4, 6, 1, 3, 5, 7

// Returns the integer of an output in a row of packed words.
int awq_value(const std::byte* row, std::uint64_t output) noexcept {
  const unsigned nibble = kNibbleOfOutput[output % 8];
  const auto byte = static_cast<unsigned>(row[output / 8 * 4 + nibble / 2]);
  return static_cast<int>(byte >> nibble % 2 * 4 & 15u);
}

}  // namespace

DType awq_form(const AwqLayer& layer) noexcept {
  return integer_form(-15, 15, has_whole_blocks(layer.shape) && layer.scale_type == ScaleType::f16);
}

Status check_awq(const AwqLayer& layer) noexcept {
  return guard([&]() -> Status {
    const LinearShape& shape = layer.shape;
    if (shape.outputs == 0 || shape.inputs == 0 || shape.group == 0 || shape.outputs % 8 != 0 ||
        shape.inputs % 32 != 0) {
      return make_error(ErrorCode::unsupported,
                        "AWQ of {} x {} weights in groups of {}: outputs must be a multiple of 8, and inputs of 32",
                        shape.outputs, shape.inputs, shape.group);
    }
    const std::uint64_t groups = shape.groups();
    TESSERA_TRY_STATUS(check_bytes("qweight", layer.qweight, product({shape.inputs, shape.outputs / 8, 4})));
    TESSERA_TRY_STATUS(check_bytes("qzeros", layer.qzeros, product({groups, shape.outputs / 8, 4})));
    return check_bytes("scales", layer.scales, product({groups, shape.outputs, scale_bytes(layer.scale_type)}));
  });
}

Status decode_awq(const AwqLayer& layer, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    const LinearShape& shape = layer.shape;
    const DType form = awq_form(layer);
    TESSERA_TRY_STATUS(check_rows(shape, first, rows, form, out));
    const std::uint64_t row_bytes = form_row_bytes(form, shape.inputs),
                        block_bytes = form_row_bytes(form, kIntegerBlock);
    const std::uint64_t packed_bytes = shape.outputs / 8 * 4;
    for (std::uint64_t k = 0; k < shape.inputs / kIntegerBlock; ++k) {
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t output = first + row;
        std::byte* const to = out.data() + row * row_bytes + k * block_bytes;
        IntegerBlock values;
        for (std::uint64_t i = 0; i < kIntegerBlock; ++i) {
          const std::uint64_t input = k * kIntegerBlock + i, group = input / shape.group;
          const int zero = awq_value(layer.qzeros.data() + group * packed_bytes, output);
          values[i] = static_cast<std::int16_t>(awq_value(layer.qweight.data() + input * packed_bytes, output) - zero);
          if (form == DType::f32) {
            const float value = static_cast<float>(values[i]) *
                                load_scale(layer.scale_type, layer.scales.data(), group * shape.outputs + output);
            std::memcpy(to + i * sizeof value, &value, sizeof value);
          }
        }
        if (form == DType::f32) continue;
        const std::uint64_t group = k * kIntegerBlock / shape.group;
        const float scale = load_scale(layer.scale_type, layer.scales.data(), group * shape.outputs + output);
        if (!write_integers(form, values, scale, to)) return Error(ErrorCode::internal, "an AWQ form is too small");
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
