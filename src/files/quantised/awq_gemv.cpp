#include "files/quantised/awq_gemv.hpp"

#include "core/error.hpp"

namespace tessera::detail {
namespace {

// Returns the number of words for the zero points of one output.
std::uint64_t gemv_words(const LinearShape& shape) noexcept {
  const std::uint64_t multiple = shape.group >= 128 ? 1 : shape.group == 64 ? 2 : 4;
  const std::uint64_t words = (shape.inputs / shape.group - 1) / 8 + 1;
  return ((words - 1) / multiple + 1) * multiple;
}

}  // namespace

Status check_awq_gemv(const AwqLayer& layer) noexcept {
  return guard([&]() -> Status {
    const LinearShape& shape = layer.shape;
    if (shape.outputs == 0 || shape.inputs == 0 || shape.inputs % kIntegerBlock != 0 || shape.group % kIntegerBlock != 0 || shape.group == 0 ||
        shape.inputs % shape.group != 0) {
      return make_error(ErrorCode::unsupported, "AWQ (gemv) of {} x {} weights in groups of {}: inputs must be whole groups, and groups multiples of 32",
                        shape.outputs, shape.inputs, shape.group);
    }
    const std::uint64_t words = gemv_words(shape);
    TESSERA_TRY_STATUS(check_bytes("qweight", layer.qweight, size_product({shape.outputs, shape.inputs / 8, 4})));
    TESSERA_TRY_STATUS(check_bytes("qzeros", layer.qzeros, size_product({shape.outputs, words, 4})));
    return check_bytes("scales", layer.scales, size_product({shape.outputs, words, 8, scale_bytes(layer.scale_type)}));
  });
}

Status decode_awq_gemv(const AwqLayer& layer, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    const LinearShape& shape = layer.shape;
    const DType form = awq_form(layer);
    TESSERA_TRY_STATUS(check_rows(shape, first, rows, form, out));
    const std::uint64_t block_bytes = form_row_bytes(form, kIntegerBlock), words = gemv_words(shape);
    std::byte* to = out.data();
    for (std::uint64_t output = first; output < first + rows; ++output) {
      for (std::uint64_t input = 0; input < shape.inputs; input += kIntegerBlock, to += block_bytes) {
        const std::uint64_t group = input / shape.group;
        const unsigned zero = stream_value(layer.qzeros.data() + output * words * 4, group, 4);
        IntegerBlock values;
        unpack_stream(layer.qweight.data() + (output * shape.inputs + input) / 2, 4, static_cast<int>(zero), values);
        if (!write_integers(form, values, load_scale(layer.scale_type, layer.scales.data(), output * words * 8 + group), to))
          return Error(ErrorCode::internal, "an AWQ form is too small");
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
