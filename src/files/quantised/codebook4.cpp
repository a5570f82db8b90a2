#include "files/quantised/codebook4.hpp"

#include <array>

#include "core/error.hpp"

namespace tessera::detail {
namespace {

float codebook_scale(const Codebook4Layer& layer, std::uint64_t block) noexcept {
  if (layer.nested_table.empty()) return load_scale(ScaleType::f32, layer.absmax.data(), block);
  const auto index = static_cast<std::uint64_t>(layer.absmax[block]);
  const float product = load_scale(ScaleType::f32, layer.nested_table.data(), index) *
                        load_scale(ScaleType::f32, layer.nested_absmax.data(), block / layer.nested_block);
  return product + layer.nested_offset;
}

}  // namespace

Status check_codebook4(const Codebook4Layer& layer) noexcept {
  return guard([&]() -> Status {
    const auto values = size_product({layer.outputs, layer.inputs});
    if (!values || *values == 0 || layer.block == 0 || layer.nested_block == 0) {
      return make_error(ErrorCode::corrupt_file, "weights of 4 bits of {} x {} in blocks of {}: no layer has that",
                        layer.outputs, layer.inputs, layer.block);
    }
    const std::uint64_t blocks = (*values - 1) / layer.block + 1;
    const bool nested = !layer.nested_table.empty();
    TESSERA_TRY_STATUS(check_bytes("weight", layer.weight, *values / 2 + *values % 2));
    TESSERA_TRY_STATUS(check_bytes("weight.quant_map", layer.table, 16 * sizeof(float)));
    TESSERA_TRY_STATUS(check_bytes("weight.absmax", layer.absmax, size_product({blocks, nested ? 1 : sizeof(float)})));
    if (!nested) return {};
    TESSERA_TRY_STATUS(check_bytes("weight.nested_quant_map", layer.nested_table, 256 * sizeof(float)));
    return check_bytes("weight.nested_absmax", layer.nested_absmax,
                       size_product({(blocks - 1) / layer.nested_block + 1, sizeof(float)}));
  });
}

Status decode_codebook4(const Codebook4Layer& layer, std::uint64_t first, std::uint64_t rows,
                        std::span<std::byte> out) noexcept {
  return guard([&]() -> Status {
    TESSERA_TRY_STATUS(check_rows({layer.outputs, layer.inputs, layer.inputs}, first, rows, layer.form, out));
    std::byte* to = out.data();
    const std::size_t size = layer.form == DType::f32 ? 4 : 2;
    const std::uint64_t end = (first + rows) * layer.inputs;
    for (std::uint64_t i = first * layer.inputs; i < end;) {
      const std::uint64_t block = i / layer.block;
      const std::uint64_t block_end =
          end - i < layer.block - i % layer.block ? end : i + (layer.block - i % layer.block);
      const float scale = codebook_scale(layer, block);
      std::array<float, 16> scaled;  // the table times the block's scale
      for (std::size_t q = 0; q < scaled.size(); ++q)
        scaled[q] = load_scale(ScaleType::f32, layer.table.data(), q) * scale;
      std::array<std::array<std::byte, 4>, 16> stored{};  // `scaled` in the rows' form
      for (std::size_t q = 0; q < scaled.size(); ++q) {
        std::byte* number = stored[q].data();
        write_number(layer.form, scaled[q], number);
      }
      for (; i < block_end; ++i, to += size) {
        const auto byte = static_cast<unsigned>(layer.weight[i / 2]);
        std::memcpy(to, stored[i % 2 == 0 ? byte >> 4 : byte & 15u].data(), size);
      }
    }
    return {};
  });
}

}  // namespace tessera::detail
