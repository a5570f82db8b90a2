#include <cstring>

#include "core/error.hpp"
#include "files/quantised/packed_integers.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

// Returns the number of inputs of a matrix, from the tensor weight_shape (two integers: outputs, inputs); 0 if this tensor is missing.
// The number does not follow from the size of the packed rows, because these are padded.
Result<std::uint64_t> inputs_said(const SafetensorsFolder& folder, const Found& shape) {
  TESSERA_TRY(const Bytes said, bytes_of(folder, shape));
  const std::size_t size = said.size() / 2;
  std::uint64_t inputs = 0;
  if (size == 4 || size == 8) std::memcpy(&inputs, said.data() + size, size);
  return inputs;
}

// Returns the number of bits (4 or 8) with which `inputs` integers take `words` words; `configured` if both fit or none fits.
unsigned bits_of_rows(std::uint64_t words, std::uint64_t inputs, unsigned configured) noexcept {
  const bool has_4 = inputs != 0 && (inputs - 1) / 8 + 1 == words, has_8 = inputs != 0 && (inputs - 1) / 4 + 1 == words;
  return has_4 == has_8 ? configured : has_4 ? 4 : 8;
}

}  // namespace

MadeMatrix packed_integers_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options) {
  Found weight = look_up(folder, stem, ".weight_packed");
  const bool is_packed = weight && weight.tensor->type == SafetensorsType::i32;
  if (!is_packed) weight = look_up(folder, stem, ".weight");
  if (!weight || (!is_packed && weight.tensor->type != SafetensorsType::i8)) return std::shared_ptr<const Matrix>();
  const Found scales = look_up(folder, stem, ".weight_scale"), zeros = look_up(folder, stem, ".weight_zero_point"),
              order = look_up(folder, stem, ".weight_g_idx"), shape = look_up(folder, stem, ".weight_shape");
  if (!scales || !scale_type_of(scales) || weight.tensor->dims.size() != 2 || weight.tensor->bytes == 0 || scales.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "weight_scale belongs to it, of F16, BF16 or F32");
  }
  TESSERA_TRY(const std::uint64_t said, inputs_said(folder, shape));
  unsigned bits = options.unpacked_bits;
  std::uint64_t inputs = weight.dim(1);
  if (is_packed) {
    bits = bits_of_rows(weight.dim(1), said, options.bits);
    inputs = weight.dim(1) * 32 / bits;
    if (said != 0 && said <= inputs) inputs = said;
  }
  const std::uint64_t outputs = weight.dim(0), groups = scales.dim(1), group = group_size(inputs, groups, options.group);
  if (group == 0) return wrong_tensor(ErrorCode::corrupt_file, folder, scales, fmt::format("{} groups do not divide {} inputs", groups, inputs));
  PackedIntegersLayer layer{.shape = {outputs, inputs, group}, .bits = bits, .packed = is_packed, .scale_type = *scale_type_of(scales), .weight = {}, .scales = {}};
  TESSERA_TRY(const bool reordered, is_reordered(folder, order, group));
  // The form depends only on whether zero points exist, not on their values.
  constexpr std::byte kSome{};
  if (zeros) layer.zeros = std::span(&kSome, 1);
  const DType form = packed_integers_form(layer, reordered);
  layer.zeros = {};
  return decoded_matrix(form, {outputs, inputs}, {weight, scales, zeros, order, shape},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.weight = bytes[0], layer.scales = bytes[1], layer.zeros = bytes[2], layer.g_idx = bytes[3];
                          TESSERA_TRY(const bool in_other_order, check_packed_integers(layer));
                          std::uint64_t rounded = 0;
                          return decode_packed_integers(layer, in_other_order, first, rows, out, rounded);
                        });
}

}  // namespace tessera::detail::hub
