#include <tessera/extend/formats/rows.hpp>

#include "core/error.hpp"
#include "formats/formats.hpp"

namespace tessera::formats {

namespace {

Status check_sizes(DType type, std::size_t n_values, std::size_t n_bytes) noexcept {
  const auto block = block_of(type);
  if (!block) return tessera::detail::make_error(ErrorCode::unsupported, "{} is not a weight format", to_string(type));
  if (n_values % block->values != 0 || n_bytes % block->bytes != 0 ||
      n_values / block->values != n_bytes / block->bytes) {
    return tessera::detail::make_error(ErrorCode::invalid_argument,
                                       "{} values and {} bytes do not agree: {} has {} values in a block of {} bytes",
                                       n_values, n_bytes, to_string(type), block->values, block->bytes);
  }
  return {};
}

}  // namespace

std::span<const DType> all() noexcept {
  return []<class... Formats>(List<Formats...>) -> std::span<const DType> {
    static constexpr DType kTypes[] = {Formats::dtype...};
    return kTypes;
  }(All{});
}

std::optional<Writing> writing_of(DType type) noexcept {
  std::optional<Writing> writing;
  visit(type, [&]<class F>(std::type_identity<F>) {
    if constexpr (has_encoder<F>) writing = F::writing;
  });
  return writing;
}

std::optional<Block> block_of(DType type) noexcept {
  std::optional<Block> block;
  visit(type, [&]<class F>(std::type_identity<F>) { block = Block{F::block_values, F::block_bytes}; });
  return block;
}

Status encode_row(DType type, std::span<const float> values, std::span<std::byte> blocks) noexcept {
  if (auto ok = check_sizes(type, values.size(), blocks.size()); !ok) return ok;
  if (!writing_of(type)) {
    return tessera::detail::make_error(ErrorCode::unsupported, "{} can be read, but not written", to_string(type));
  }
  visit(type, [&]<class F>(std::type_identity<F>) {
    if constexpr (has_encoder<F>) {
      const std::size_t n = values.size() / F::block_values;
      for (std::size_t b = 0; b < n; ++b)
        F::encode(values.data() + b * F::block_values, blocks.data() + b * F::block_bytes);
    }
  });
  return {};
}

Status decode_row(DType type, std::span<const std::byte> blocks, std::span<float> values) noexcept {
  if (auto ok = check_sizes(type, values.size(), blocks.size()); !ok) return ok;
  visit(type, [&]<class F>(std::type_identity<F>) {
    const std::size_t n = values.size() / F::block_values;
    for (std::size_t b = 0; b < n; ++b)
      F::decode(blocks.data() + b * F::block_bytes, values.data() + b * F::block_values);
  });
  return {};
}

}  // namespace tessera::formats
