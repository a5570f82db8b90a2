#include "files/quantised/codebook_rows.hpp"

#include "core/error.hpp"

namespace tessera::detail {

DType codebook_rows_form(const CodebookRowsLayer& layer) noexcept { return number_form(layer.type); }

Status check_codebook_rows(const CodebookRowsLayer& layer) noexcept {
  return guard([&]() -> Status {
    if (layer.bits != 3 && layer.bits != 4) return make_error(ErrorCode::unsupported, "tables of {} bits are not supported; 3 and 4 are", layer.bits);
    if (layer.outputs == 0 || layer.inputs == 0 || layer.inputs % 32 != 0) {
      return make_error(ErrorCode::unsupported, "tables of {} x {} weights: inputs must be a multiple of 32", layer.outputs, layer.inputs);
    }
    TESSERA_TRY_STATUS(check_bytes("qweight", layer.qweight, size_product({layer.inputs / 32, 4, layer.bits, layer.outputs})));
    return check_bytes("lookup_table", layer.table, size_product({layer.outputs, std::uint64_t{1} << layer.bits, scale_bytes(layer.type)}));
  });
}

Status decode_codebook_rows(const CodebookRowsLayer& layer, std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_rows({layer.outputs, layer.inputs, layer.inputs}, first, rows, codebook_rows_form(layer), out));
    const std::uint64_t size = scale_bytes(layer.type);
    for (std::uint64_t k = 0; k < layer.inputs / 32; ++k) {
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t output = first + row;
        std::byte stream[16];  // 32 integers
        for (unsigned j = 0; j < layer.bits; ++j) {
          std::memcpy(stream + 4 * j, layer.qweight.data() + ((k * layer.bits + j) * layer.outputs + output) * 4, 4);
        }
        const std::byte* const table = layer.table.data() + (output << layer.bits) * size;
        std::byte* const to = out.data() + (row * layer.inputs + k * 32) * size;
        for (unsigned i = 0; i < 32; ++i) std::memcpy(to + i * size, table + stream_value(stream, i, layer.bits) * size, size);
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
