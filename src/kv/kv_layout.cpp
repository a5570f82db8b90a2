#include <tessera/kv/kv_layout.hpp>

#include <algorithm>
#include <array>

#include "kv/block.hpp"
#include "support/checked.hpp"
#include "support/error.hpp"

namespace tessera {

using detail::checked_add;
using detail::checked_align;
using detail::checked_multiply;
using detail::make_error;

namespace {

constexpr std::uint64_t kBlockAlignment = 64;

// Dimensions are at most kMaxHeadDim: no block is near overflowing.
std::optional<std::uint64_t> block_bytes(DType dtype, kv::Part part, std::uint32_t page_tokens, std::uint32_t dim) {
  return checked_align(kv::block_bytes(dtype, part, page_tokens, dim), kBlockAlignment);
}

template <class... Codecs>
constexpr std::array<DType, sizeof...(Codecs)> dtypes(kv::List<Codecs...>) {
  return {Codecs::dtype...};
}
constexpr std::array kTypes = dtypes(kv::All{});

}  // namespace

std::span<const DType> kv_types() noexcept { return kTypes; }
std::uint64_t kv_record_bytes(DType type, std::uint64_t head_dim) noexcept { return kv::record_bytes(type, head_dim); }

Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype, std::uint32_t page_tokens) noexcept {
  return detail::guard([&]() -> Result<KvLayout> {
    if (!kv::is_kv_type(dtype)) {
      return make_error(ErrorCode::unsupported, "a KV cache of type {} is not available; choose f32, f16, bf16 or int8",
                        to_string(dtype));
    }
    if (page_tokens != 16 && page_tokens != 32 && page_tokens != 64) {
      return make_error(ErrorCode::invalid_argument, "a KV page holds 16, 32 or 64 tokens, not {}", page_tokens);
    }
    KvLayout layout{.dtype = dtype, .page_tokens = page_tokens, .page_bytes = 0, .layers = {}};
    layout.layers.reserve(layers.size());
    for (const KvLayerShape& shape : layers) {
      if (std::max(shape.key_dim, shape.value_dim) > kMaxHeadDim) {
        return make_error(ErrorCode::unsupported, "attention heads of {} dimensions; the KV cache holds up to {}",
                          std::max(shape.key_dim, shape.value_dim), kMaxHeadDim);
      }
      if (shape.kv_heads == 0 || shape.key_dim == 0 || shape.value_dim == 0) {
        return make_error(ErrorCode::invalid_argument, "a layer of {} KV heads of {} and {} dimensions has nothing to hold",
                          shape.kv_heads, shape.key_dim, shape.value_dim);
      }
      const auto k = block_bytes(dtype, kv::Part::key, page_tokens, shape.key_dim);
      const auto v = block_bytes(dtype, kv::Part::value, page_tokens, shape.value_dim);
      const auto both = k && v ? checked_add(*k, *v) : std::nullopt;
      const auto heads = both ? checked_multiply(*both, shape.kv_heads) : std::nullopt;
      const auto end = heads ? checked_add(layout.page_bytes, *heads) : std::nullopt;
      if (!end) return make_error(ErrorCode::invalid_argument, "a KV page of this model is too large to address");
      layout.layers.push_back({.shape = shape,
                               .k_offset = layout.page_bytes,
                               .v_offset = layout.page_bytes + shape.kv_heads * *k,
                               .k_stride = *k,
                               .v_stride = *v});
      layout.page_bytes = *end;
    }
    return layout;
  });
}

}  // namespace tessera
