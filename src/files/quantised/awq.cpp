#include "files/quantised/awq.hpp"

#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr unsigned kNibbleOfOutput[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // the inverse of 0, 2, 4, 6, 1, 3, 5, 7

// The place of an output's integer in each row of packed words.
struct AwqPlace {
  explicit AwqPlace(std::uint64_t output) noexcept
      : byte(output / 8 * 4 + kNibbleOfOutput[output % 8] / 2), shift(kNibbleOfOutput[output % 8] % 2 * 4) {}
  [[nodiscard]] int value(const std::byte* row) const noexcept {
    return static_cast<int>(static_cast<unsigned>(row[byte]) >> shift & 15u);
  }

  std::uint64_t byte;
  unsigned shift;
};

}  // namespace

DType awq_form(const AwqLayer& layer) noexcept {
  return integer_form(-15, 15, has_whole_blocks(layer.shape) && layer.scale_type == ScaleType::f16, layer.scale_type);
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
    TESSERA_TRY_STATUS(check_bytes("qweight", layer.qweight, size_product({shape.inputs, shape.outputs / 8, 4})));
    TESSERA_TRY_STATUS(check_bytes("qzeros", layer.qzeros, size_product({groups, shape.outputs / 8, 4})));
    return check_bytes("scales", layer.scales, size_product({groups, shape.outputs, scale_bytes(layer.scale_type)}));
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
        const AwqPlace place(output);
        std::byte* const to = out.data() + row * row_bytes + k * block_bytes;
        const std::byte* const packed = layer.qweight.data() + k * kIntegerBlock * packed_bytes;
        const auto zero_of = [&](std::uint64_t group) {
          return place.value(layer.qzeros.data() + group * packed_bytes);
        };
        const auto scale_of = [&](std::uint64_t group) {
          return load_scale(layer.scale_type, layer.scales.data(), group * shape.outputs + output);
        };
        if (is_number_form(form)) {
          std::byte* number = to;
          for (std::uint64_t i = 0; i < kIntegerBlock; ++i) {
            const std::uint64_t group = (k * kIntegerBlock + i) / shape.group;
            write_number(form, static_cast<float>(place.value(packed + i * packed_bytes) - zero_of(group)) * scale_of(group), number);
          }
          continue;
        }
        const std::uint64_t group = k * kIntegerBlock / shape.group;
        const int zero = zero_of(group);
        IntegerBlock values;
        for (std::uint64_t i = 0; i < kIntegerBlock; ++i) {
          values[i] = static_cast<std::int16_t>(place.value(packed + i * packed_bytes) - zero);
        }
        if (!write_integers(form, values, scale_of(group), to))
          return Error(ErrorCode::internal, "an AWQ form is too small");
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
