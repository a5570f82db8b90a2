#include <array>

#include "core/error.hpp"
#include "files/quantised/codebook_rows.hpp"
#include "hub/quantised/methods.hpp"

namespace tessera::detail::hub {

Status read_squeezellm_options(const Json& config, QuantisationOptions& options) {
  constexpr std::array allowed = {3u, 4u};
  return read_bits_and_group(config, "wbits", allowed, options);
}

MadeMatrix codebook_rows_matrix(const SafetensorsFolder& folder, std::string_view stem, const QuantisationOptions&) {
  const Found weight = look_up(folder, stem, ".qweight"), table = look_up(folder, stem, ".lookup_table");
  if (!weight) return std::shared_ptr<const Matrix>();
  if (!table || !scale_type_of(table) || weight.tensor->bytes == 0 || (table.dim(1) != 8 && table.dim(1) != 16)) {
    return wrong_tensor(ErrorCode::corrupt_file, folder, weight, "lookup_table belongs to it, of F16, BF16 or F32 [outputs, 8 or 16]");
  }
  if (const Found outliers = look_up(folder, stem, ".rows"); outliers) {
    return wrong_tensor(ErrorCode::unsupported, folder, outliers, "sparse outliers of SqueezeLLM are not read; take the dense model");
  }
  const unsigned bits = table.dim(1) == 8 ? 3 : 4;
  CodebookRowsLayer layer{.outputs = weight.dim(1), .inputs = weight.dim(0) * 32 / bits, .bits = bits, .type = *scale_type_of(table), .qweight = {}, .table = {}};
  return decoded_matrix(codebook_rows_form(layer), {layer.outputs, layer.inputs}, {weight, table},
                        [layer](std::span<const Bytes> bytes, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) mutable -> Status {
                          layer.qweight = bytes[0], layer.table = bytes[1];
                          TESSERA_TRY_STATUS(check_codebook_rows(layer));
                          return decode_codebook_rows(layer, first, rows, out);
                        });
}

}  // namespace tessera::detail::hub
