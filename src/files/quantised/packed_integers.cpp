#include "files/quantised/packed_integers.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::detail {
namespace {

// Reads a layer's integers, zero points and scales by output and input.
class PackedIntegers {
 public:
  explicit PackedIntegers(const PackedIntegersLayer& layer) noexcept
      : layer_(layer),
        row_bytes_(packed_row_bytes(layer)),
        groups_(layer.shape.groups()),
        half_(1 << (layer.bits - 1)) {}

  [[nodiscard]] static std::uint64_t packed_row_bytes(const PackedIntegersLayer& layer) noexcept {
    return layer.packed ? (layer.shape.inputs / 32 * layer.bits + (layer.shape.inputs % 32 * layer.bits + 31) / 32) * 4
                        : layer.shape.inputs;
  }

  [[nodiscard]] int value(std::uint64_t output, std::uint64_t input) const noexcept {
    const std::byte* const row = layer_.weight.data() + output * row_bytes_;
    if (!layer_.packed) return static_cast<std::int8_t>(row[input]);
    return static_cast<int>(stream_value(row, input, layer_.bits)) - half_;
  }
  // Reads 32 integers minus a zero point. Precondition: the first one begins a byte.
  void block(std::uint64_t output, std::uint64_t input, int zero, IntegerBlock& values) const noexcept {
    const std::byte* const row = layer_.weight.data() + output * row_bytes_;
    if (layer_.packed) return unpack_stream(row + input * layer_.bits / 8, layer_.bits, half_ + zero, values);
    for (std::size_t i = 0; i < kIntegerBlock; ++i) {
      values[i] = static_cast<std::int16_t>(static_cast<std::int8_t>(row[input + i]) - zero);
    }
  }
  [[nodiscard]] int zero(std::uint64_t output, std::uint64_t group) const noexcept {
    if (layer_.zeros.empty()) return 0;
    if (!layer_.packed) return static_cast<std::int8_t>(layer_.zeros[output * groups_ + group]);
    const std::uint64_t a_word = 32 / layer_.bits;  // 4 and 8 bits: no integer crosses words
    const std::byte* const word = layer_.zeros.data() + (output / a_word * groups_ + group) * 4;
    return static_cast<int>(stream_value(word, output % a_word, layer_.bits)) - half_;
  }
  [[nodiscard]] float scale(std::uint64_t output, std::uint64_t group) const noexcept {
    return load_scale(layer_.scale_type, layer_.scales.data(), output * groups_ + group);
  }
  [[nodiscard]] std::uint64_t group_of(std::uint64_t input) const noexcept {
    if (layer_.g_idx.empty()) return input / layer_.shape.group;
    std::uint32_t group = 0;
    std::memcpy(&group, layer_.g_idx.data() + input * sizeof group, sizeof group);
    return group;
  }

 private:
  const PackedIntegersLayer& layer_;
  std::uint64_t row_bytes_, groups_;
  int half_;
};

}  // namespace

DType packed_integers_form(const PackedIntegersLayer& layer, bool reordered) noexcept {
  const int count = 1 << layer.bits;
  const bool whole = !reordered && has_whole_blocks(layer.shape) && layer.scale_type != ScaleType::f32;
  return layer.zeros.empty() ? integer_form(-count / 2, count / 2 - 1, whole, layer.scale_type)
                             : integer_form(-(count - 1), count - 1, whole, layer.scale_type);
}

Result<bool> check_packed_integers(const PackedIntegersLayer& layer) noexcept {
  return guard([&]() -> Result<bool> {
    const LinearShape& shape = layer.shape;
    if (layer.bits != 8 && layer.bits != 4) {
      return make_error(ErrorCode::unsupported, "integers of {} bits are not supported; 4 and 8 are", layer.bits);
    }
    if (shape.outputs == 0 || shape.inputs == 0 || shape.group == 0) {
      return make_error(ErrorCode::corrupt_file, "{} x {} weights in groups of {}: none may be 0", shape.outputs,
                        shape.inputs, shape.group);
    }
    const std::uint64_t groups = shape.groups();
    TESSERA_TRY_STATUS(check_bytes(layer.packed ? "weight_packed" : "weight", layer.weight,
                                   size_product({shape.outputs, PackedIntegers::packed_row_bytes(layer)})));
    TESSERA_TRY_STATUS(check_bytes("weight_scale", layer.scales,
                                   size_product({shape.outputs, groups, scale_bytes(layer.scale_type)})));
    if (!layer.zeros.empty()) {
      const std::uint64_t a_word = 32 / layer.bits;
      TESSERA_TRY_STATUS(check_bytes("weight_zero_point", layer.zeros,
                                     layer.packed ? size_product({(shape.outputs - 1) / a_word + 1, groups, 4})
                                                  : size_product({shape.outputs, groups})));
    }
    if (layer.g_idx.empty()) return false;
    TESSERA_TRY_STATUS(check_bytes("weight_g_idx", layer.g_idx, size_product({shape.inputs, 4})));
    const PackedIntegers integers(layer);
    bool reordered = false;
    for (std::uint64_t i = 0; i < shape.inputs; ++i) {
      const std::uint64_t group = integers.group_of(i);
      if (group >= groups) {
        return make_error(ErrorCode::corrupt_file, "weight_g_idx puts input {} into group {} of {}", i,
                          static_cast<std::int32_t>(group), groups);
      }
      reordered = reordered || group != i / shape.group;
    }
    return reordered;
  });
}

Status decode_packed_integers(const PackedIntegersLayer& layer, bool reordered, std::uint64_t first, std::uint64_t rows,
                              std::span<std::byte> out, std::uint64_t& rounded) noexcept {
  return guard([&]() -> Status {
    const LinearShape& shape = layer.shape;
    const DType form = packed_integers_form(layer, reordered);
    TESSERA_TRY_STATUS(check_rows(shape, first, rows, form, out));
    const PackedIntegers integers(layer);
    std::byte* to = out.data();
    for (std::uint64_t output = first; output < first + rows; ++output) {
      if (is_number_form(form)) {
        for (std::uint64_t input = 0; input < shape.inputs; ++input) {
          const std::uint64_t group = integers.group_of(input);
          const int integer = integers.value(output, input) - integers.zero(output, group);
          write_number(form, static_cast<float>(integer) * integers.scale(output, group), to);
        }
        continue;
      }
      for (std::uint64_t input = 0; input < shape.inputs; input += kIntegerBlock) {
        const std::uint64_t group = input / shape.group;
        const int zero = integers.zero(output, group);
        const float scale = integers.scale(output, group);
        IntegerBlock values;
        integers.block(output, input, zero, values);
        if (!write_integers(form, values, scale, to))
          return make_error(ErrorCode::corrupt_file, "an integer of output {} is beyond {} bits", output, layer.bits);
        if (f16_to_f32(f32_to_f16(scale)) != scale) ++rounded;
        to += form_row_bytes(form, kIntegerBlock);
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
