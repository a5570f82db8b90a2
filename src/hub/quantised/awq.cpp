#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "core/error.hpp"
#include "files/quantised/awq.hpp"
#include "files/quantised/awq_gemv.hpp"
#include "hub/config.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

namespace {

MadeMatrix gemv_matrix(const std::array<Found, 3>& found, const QuantisationOptions& options) {
  const auto& [weight, zeros, scales] = found;
  const std::uint64_t outputs = weight.dim(0), inputs = weight.dim(1) * 8;
  AwqLayer layer{.shape = {outputs, inputs, options.group < 1 ? inputs : static_cast<std::uint64_t>(options.group)}, .scale_type = *scale_type_of(scales),
                 .qweight = {}, .qzeros = {}, .scales = {}};
  return decoded_matrix(awq_form(layer), {outputs, inputs}, {weight, zeros, scales},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.qweight = bytes[0], layer.qzeros = bytes[1], layer.scales = bytes[2];
                          TESSERA_TRY_STATUS(check_awq_gemv(layer));
                          return decode_awq_gemv(layer, first, rows, out);
                        });
}

}  // namespace

Status read_awq_options(const Json& config, QuantisationOptions& options) {
  constexpr std::array allowed = {4u};
  TESSERA_TRY_STATUS(read_bits_and_group(config, find_in(&config, "w_bit") != nullptr ? "w_bit" : "bits", allowed, options));
  for (const std::string_view key : {"version", "checkpoint_format", "format"}) {
    std::string layout(text_in(&config, key));
    std::ranges::transform(layout, layout.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (layout == "gemv") options.awq_layout = AwqLayout::gemv;
    else if (!layout.empty() && layout != "gemm") return not_read(key, text_in(&config, key));
  }
  // MIT's llm-awq packs words of 16 bits in another order.
  if (text_in(&config, "backend") == "llm-awq") return not_read("backend", "llm-awq");
  return {};
}

MadeMatrix awq_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions& options) {
  const Found weight = look_up(folder, stem, ".qweight"), zeros = look_up(folder, stem, ".qzeros"), scales = look_up(folder, stem, ".scales");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!scales || !scale_type_of(scales) || !zeros || weight.tensor->bytes == 0) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "scales (of F16, BF16 or F32) and qzeros belong to it");
  }
  if (options.awq_layout == AwqLayout::gemv) return gemv_matrix({weight, zeros, scales}, options);
  const std::uint64_t inputs = weight.dim(0), outputs = weight.dim(1) * 8, group = group_size(inputs, scales.dim(0), options.group);
  if (group == 0) return wrong_tensor(ErrorCode::corrupt_file, folder, scales, fmt::format("{} groups do not divide {} inputs", scales.dim(0), inputs));
  AwqLayer layer{.shape = {outputs, inputs, group}, .scale_type = *scale_type_of(scales), .qweight = {}, .qzeros = {}, .scales = {}};
  return decoded_matrix(awq_form(layer), {outputs, inputs}, {weight, zeros, scales},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.qweight = bytes[0], layer.qzeros = bytes[1], layer.scales = bytes[2];
                          TESSERA_TRY_STATUS(check_awq(layer));
                          return decode_awq(layer, first, rows, out);
                        });
}

}  // namespace tessera::detail::hub
