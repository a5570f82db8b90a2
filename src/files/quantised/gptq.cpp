#include "files/quantised/gptq.hpp"

#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr unsigned kMostGptqBits = 8;

std::uint32_t load_word(const std::byte* words, std::uint64_t index) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, words + index * sizeof word, sizeof word);
  return word;
}

// The zero points and scales of a layer, by group and output.
class GptqGroups {
 public:
  explicit GptqGroups(const GptqLayer& layer) noexcept
      : layer_(layer), zero_row_bytes_(layer.shape.outputs * layer.bits / 8) {}

  [[nodiscard]] int zero(std::uint64_t group, std::uint64_t output) const noexcept {
    const std::byte* const row = layer_.qzeros.data() + group * zero_row_bytes_;
    const unsigned mask = (1u << layer_.bits) - 1;
    if (layer_.version == GptqVersion::v1_words && layer_.bits != 3) {
      const unsigned a_word = 32 / layer_.bits, ones = ~0u / mask;  // a 1 in each integer of a word
      const std::uint32_t word = load_word(row, output / a_word) + ones;
      return static_cast<int>(word >> output % a_word * layer_.bits & mask);
    }
    const unsigned stored = stream_value(row, output, layer_.bits);
    return static_cast<int>(layer_.version == GptqVersion::v2 ? stored : (stored + 1) & mask);
  }
  [[nodiscard]] float scale(std::uint64_t group, std::uint64_t output) const noexcept {
    return load_scale(layer_.scale_type, layer_.scales.data(), group * layer_.shape.outputs + output);
  }

 private:
  const GptqLayer& layer_;
  std::uint64_t zero_row_bytes_;
};

Error unexpected_zero(int zero, std::uint64_t group, std::uint64_t output, int wanted) {
  return make_error(ErrorCode::corrupt_file,
                    "the zero point of group {} of output {} is {}, where the configuration (\"sym\": true) says {}: "
                    "set \"sym\" to false",
                    group, output, zero, wanted);
}

}  // namespace

DType gptq_form(const GptqLayer& layer, bool act_order) noexcept {
  const int count = 1 << layer.bits;
  const bool whole = !act_order && has_whole_blocks(layer.shape) && layer.scale_type == ScaleType::f16;
  return layer.symmetric ? integer_form(-count / 2, count / 2 - 1, whole, layer.scale_type)
                         : integer_form(-(count - 1), count - 1, whole, layer.scale_type);
}

Result<bool> check_gptq(const GptqLayer& layer) noexcept {
  return guard([&]() -> Result<bool> {
    const LinearShape& shape = layer.shape;
    if (layer.bits != 2 && layer.bits != 3 && layer.bits != 4 && layer.bits != 8) {
      return make_error(ErrorCode::unsupported, "GPTQ with {} bits is not supported; 2, 3, 4 and 8 are", layer.bits);
    }
    if (shape.outputs == 0 || shape.inputs == 0 || shape.group == 0 || shape.outputs % 32 != 0 ||
        shape.inputs % 32 != 0) {
      return make_error(ErrorCode::unsupported,
                        "GPTQ of {} x {} weights in groups of {}: outputs and inputs must be multiples of 32",
                        shape.outputs, shape.inputs, shape.group);
    }
    const std::uint64_t groups = shape.groups();
    TESSERA_TRY_STATUS(
        check_bytes("qweight", layer.qweight, size_product({shape.inputs / 32, 4, layer.bits, shape.outputs})));
    TESSERA_TRY_STATUS(check_bytes("qzeros", layer.qzeros, size_product({groups, shape.outputs / 32, 4, layer.bits})));
    TESSERA_TRY_STATUS(
        check_bytes("scales", layer.scales, size_product({groups, shape.outputs, scale_bytes(layer.scale_type)})));
    if (layer.g_idx.empty()) return false;
    TESSERA_TRY_STATUS(check_bytes("g_idx", layer.g_idx, size_product({shape.inputs, 4})));
    bool act_order = false;
    for (std::uint64_t i = 0; i < shape.inputs; ++i) {
      const std::uint32_t group = load_word(layer.g_idx.data(), i);
      if (group >= groups) {
        return make_error(ErrorCode::corrupt_file, "g_idx puts input {} into group {} of {}", i,
                          static_cast<std::int32_t>(group), groups);
      }
      act_order = act_order || group != i / shape.group;
    }
    return act_order;
  });
}

Status decode_gptq(const GptqLayer& layer, bool act_order, std::uint64_t first, std::uint64_t rows,
                   std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    const LinearShape& shape = layer.shape;
    const DType form = gptq_form(layer, act_order);
    TESSERA_TRY_STATUS(check_rows(shape, first, rows, form, out));
    const GptqGroups groups(layer);
    const int middle = 1 << (layer.bits - 1);
    const std::uint64_t row_bytes = form_row_bytes(form, shape.inputs),
                        block_bytes = form_row_bytes(form, kIntegerBlock);
    for (std::uint64_t k = 0; k < shape.inputs / kIntegerBlock; ++k) {
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t output = first + row;
        std::byte stream[4 * kMostGptqBits];  // the block's integers
        for (unsigned j = 0; j < layer.bits; ++j) {
          std::memcpy(stream + 4 * j, layer.qweight.data() + ((k * layer.bits + j) * shape.outputs + output) * 4, 4);
        }
        std::byte* const to = out.data() + row * row_bytes + k * block_bytes;
        if (is_number_form(form)) {
          std::byte* number = to;
          for (std::uint64_t i = 0; i < kIntegerBlock; ++i) {
            const std::uint64_t input = k * kIntegerBlock + i;
            const std::uint64_t group =
                layer.g_idx.empty() ? input / shape.group : load_word(layer.g_idx.data(), input);
            const int zero = groups.zero(group, output);
            if (layer.symmetric && zero != middle) return unexpected_zero(zero, group, output, middle);
            const int integer = static_cast<int>(stream_value(stream, i, layer.bits)) - zero;
            write_number(form, static_cast<float>(integer) * groups.scale(group, output), number);
          }
          continue;
        }
        const std::uint64_t group = k * kIntegerBlock / shape.group;
        const int zero = groups.zero(group, output);
        if (layer.symmetric && zero != middle) return unexpected_zero(zero, group, output, middle);
        IntegerBlock values;
        unpack_stream(stream, layer.bits, zero, values);
        if (!write_integers(form, values, groups.scale(group, output), to))
          return Error(ErrorCode::internal, "a GPTQ form is too small");
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
