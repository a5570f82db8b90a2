#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "hub/config.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

// Returns whether all zero points are the middle of the integers' range, as in symmetric layers.
Result<bool> has_middle_zeros(const SafetensorsFolder& folder, const Found& zeros, const QuantisationOptions& options, unsigned bits) {
  TESSERA_TRY(const Bytes bytes, bytes_of(folder, zeros));
  const unsigned middle = (1u << (bits - 1)) - (options.gptq_version == GptqVersion::v2 ? 0 : 1);
  for (std::uint64_t i = 0; i < bytes.size() * 8 / bits; ++i) {
    if (stream_value(bytes.data(), i, bits) != middle) return false;
  }
  return true;
}

// Returns the number of bits that follows from the shapes of zero points and scales; `configured` if none follows.
unsigned bits_of(const Found& zeros, const Found& scales, unsigned configured) noexcept {
  const std::uint64_t outputs = scales.dim(1), packed = zeros.dim(1) * 32;
  for (const unsigned bits : {2u, 3u, 4u, 8u}) {
    if (outputs != 0 && packed == outputs * bits) return bits;
  }
  return configured;
}

// Returns whether GPTQModel has written the folder. Example: "meta": {"quantizer": ["gptqmodel:1.4"]}.
bool is_by_gptqmodel(const Json& config) noexcept {
  const Json* quantizer = find_in(find_in(&config, "meta"), "quantizer");
  if (quantizer == nullptr) return false;
  const auto named = [](const Json& text) { return text.string() != nullptr && text.string()->starts_with("gptqmodel"); };
  return named(*quantizer) || (quantizer->elements() != nullptr && std::ranges::any_of(*quantizer->elements(), named));
}

// Reads "dynamic", which has other options for some layers, chosen by patterns of the layers' names. Only the option "sym" is used; it is
// not known then for which layers (symmetry_varies). The bits and group sizes need not be read, because they follow from the tensors'
// shapes. Options that change the format are refused.
Status read_dynamic(const Json& dynamic, QuantisationOptions& options) {
  if (dynamic.members() == nullptr) return not_read("dynamic", "not an object");
  for (const auto& [pattern, own] : *dynamic.members()) {
    if (own.members() == nullptr) continue;  // "-:PATTERN": the layers are not quantised
    if (find_in(&own, "sym") != nullptr) options.symmetry_varies = true;
    for (const std::string_view key : {"rotation", "pack_dtype", "checkpoint_format", "format", "method", "quant_method"}) {
      if (find_in(&own, key) != nullptr) return not_read("dynamic", fmt::format("{}: {}", printable(pattern), key));
    }
  }
  return {};
}

}  // namespace

Status read_gptq_options(const Json& config, QuantisationOptions& options) {
  constexpr std::array allowed = {2u, 3u, 4u, 8u};
  TESSERA_TRY_STATUS(read_bits_and_group(config, "bits", allowed, options));
  options.symmetric = flag_in(&config, "sym", true);
  if (is_by_gptqmodel(config)) options.gptq_version = GptqVersion::v1_words;
  for (const std::string_view key : {"checkpoint_format", "format"}) {
    const std::string_view format = text_in(&config, key);
    if (format == "gptq_v2") options.gptq_version = GptqVersion::v2;
    else if (!format.empty() && format != "gptq") return not_read(key, format);
  }
  if (flag_in(&config, "is_marlin_format", false)) return not_read("is_marlin_format", "true");
  const std::string_view word = text_in(&config, "pack_dtype");
  if (!word.empty() && word != "int32") return not_read("pack_dtype", word);
  // A rotation is refused: the weights contain it, but tessera does not rotate the inputs of the layers that need it.
  if (const std::string_view rotation = text_in(&config, "rotation"); !rotation.empty()) return not_read("rotation", rotation);
  const Json* dynamic = find_in(&config, "dynamic");
  return dynamic == nullptr ? Status() : read_dynamic(*dynamic, options);
}

MadeMatrix gptq_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options) {
  const Found weight = look_up(folder, stem, ".qweight"), zeros = look_up(folder, stem, ".qzeros"), scales = look_up(folder, stem, ".scales"),
              order = look_up(folder, stem, ".g_idx");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!scales || !scale_type_of(scales) || !zeros || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "scales (of F16, BF16 or F32) and qzeros belong to it");
  }
  const unsigned bits = bits_of(zeros, scales, options.bits);
  const std::uint64_t inputs = weight.dim(0) * 32 / bits, outputs = weight.dim(1);
  const std::uint64_t group = group_size(inputs, scales.dim(0), options.group);
  if (group == 0) return wrong_tensor(ErrorCode::corrupt_file, folder, scales, fmt::format("{} groups do not divide {} inputs", scales.dim(0), inputs));
  GptqLayer layer{.shape = {outputs, inputs, group}, .bits = bits, .version = options.gptq_version, .symmetric = options.symmetric,
                  .scale_type = *scale_type_of(scales), .qweight = {}, .qzeros = {}, .scales = {}};
  if (options.symmetry_varies) {
    TESSERA_TRY(layer.symmetric, has_middle_zeros(folder, zeros, options, bits));
  }
  TESSERA_TRY(const bool reordered, is_reordered(folder, order, group));
  return decoded_matrix(gptq_form(layer, reordered), {outputs, inputs}, {weight, zeros, scales, order},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.qweight = bytes[0], layer.qzeros = bytes[1], layer.scales = bytes[2], layer.g_idx = bytes[3];
                          TESSERA_TRY(const bool act_order, check_gptq(layer));
                          return decode_gptq(layer, act_order, first, rows, out);
                        });
}

}  // namespace tessera::detail::hub
