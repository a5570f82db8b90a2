#include <tessera/kv/kv_layout.hpp>

#include <algorithm>
#include <array>
#include <limits>

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

Status check(const KvLayerShape& shape) {
  if (std::max(shape.key_dim, shape.value_dim) > kMaxHeadDim) {
    return make_error(ErrorCode::unsupported, "attention heads of {} dimensions; the KV cache holds up to {}",
                      std::max(shape.key_dim, shape.value_dim), kMaxHeadDim);
  }
  if (shape.kv_heads == 0 || shape.key_dim == 0 || shape.value_dim == 0) {
    return make_error(ErrorCode::invalid_argument, "a layer of {} KV heads of {} and {} dimensions has nothing to hold",
                      shape.kv_heads, shape.key_dim, shape.value_dim);
  }
  return {};
}

// Puts a layer's blocks behind what the group's pages have so far.
Status add_layer(KvGroup& group, const KvLayerShape& shape, const KvLayout& layout) {
  const auto k = block_bytes(layout.dtype, kv::Part::key, layout.page_tokens, shape.key_dim);
  const auto v = block_bytes(layout.dtype, kv::Part::value, layout.page_tokens, shape.value_dim);
  const auto both = k && v ? checked_add(*k, *v) : std::nullopt;
  const auto heads = both ? checked_multiply(*both, shape.kv_heads) : std::nullopt;
  const auto end = heads ? checked_add(group.page_bytes, *heads) : std::nullopt;
  // All groups' pages together, too.
  if (!end || !checked_add(layout.page_bytes(), *heads)) {
    return make_error(ErrorCode::invalid_argument, "a KV page of this model is too large to address");
  }
  group.layers.push_back({.shape = shape,
                          .k_offset = group.page_bytes,
                          .v_offset = group.page_bytes + shape.kv_heads * *k,
                          .k_stride = *k,
                          .v_stride = *v});
  group.page_bytes = *end;
  return {};
}

}  // namespace

std::span<const DType> kv_types() noexcept { return kTypes; }
std::uint64_t kv_record_bytes(DType type, std::uint64_t head_dim) noexcept { return kv::record_bytes(type, head_dim); }

Result<KvLayout> make_kv_layout(std::span<const KvLayerNeeds> layers, DType dtype, std::uint32_t page_tokens) noexcept {
  return detail::guard([&]() -> Result<KvLayout> {
    if (!kv::is_kv_type(dtype)) {
      return make_error(ErrorCode::unsupported, "a KV cache of type {} is not available; choose f32, f16, bf16 or int8",
                        to_string(dtype));
    }
    if (page_tokens != 16 && page_tokens != 32 && page_tokens != 64) {
      return make_error(ErrorCode::invalid_argument, "a KV page holds 16, 32 or 64 tokens, not {}", page_tokens);
    }
    if (layers.size() > std::numeric_limits<std::uint16_t>::max()) {
      return make_error(ErrorCode::unsupported, "{} layers; the KV cache holds up to {}", layers.size(),
                        std::numeric_limits<std::uint16_t>::max());
    }
    KvLayout layout{.dtype = dtype, .page_tokens = page_tokens, .groups = {}, .layers = {}};
    layout.layers.reserve(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const KvLayerNeeds& layer = layers[i];
      if (layer.shares != KvLayerNeeds::kOwn) {
        const bool fits = layer.shares < i && layers[layer.shares].shape == layer.shape &&
                          layers[layer.shares].window == layer.window;
        if (!fits) {
          return make_error(ErrorCode::invalid_argument,
                            "layer {} shares the keys and values of layer {}, which must be an earlier one of the same "
                            "shape and window",
                            i, layer.shares);
        }
        layout.layers.push_back(layout.layers[layer.shares]);
        continue;
      }
      TESSERA_TRY_STATUS(check(layer.shape));
      auto group = std::ranges::find(layout.groups, layer.window, &KvGroup::window);
      if (group == layout.groups.end()) {
        group = layout.groups.insert(group, KvGroup{.layers = {}, .window = layer.window});
      }
      TESSERA_TRY_STATUS(add_layer(*group, layer.shape, layout));
      layout.layers.push_back({.group = static_cast<std::uint16_t>(group - layout.groups.begin()),
                               .layer = static_cast<std::uint16_t>(group->layers.size() - 1)});
    }
    return layout;
  });
}

Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype, std::uint32_t page_tokens) noexcept {
  return detail::guard([&]() -> Result<KvLayout> {
    std::vector<KvLayerNeeds> needs;
    needs.reserve(layers.size());
    for (const KvLayerShape& shape : layers) needs.push_back({.shape = shape});
    return make_kv_layout(needs, dtype, page_tokens);
  });
}

}  // namespace tessera
