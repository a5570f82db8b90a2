#include <tessera/extend/kv/kv_layout.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include "core/checked.hpp"
#include "core/error.hpp"
#include "kv/block.hpp"

namespace tessera {

using detail::checked_add;
using detail::checked_align;
using detail::checked_multiply;
using detail::make_error;

namespace {

constexpr std::uint64_t kBlockAlignment = 64;
constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 40;

template <class... Types>
constexpr std::array<DType, sizeof...(Types)> dtypes(kv::List<Types...>) {
  return {Types::dtype...};
}
constexpr std::array kTypes = dtypes(kv::All{});

Status check(const KvLayerShape& shape) {
  if (shape.state_bytes != 0) {
    const bool has_heads = shape.kv_heads != 0 || shape.key_dim != 0 || shape.value_dim != 0;
    if (!has_heads && shape.state_bytes <= kMaxStateBytes) return {};
    return make_error(ErrorCode::invalid_argument, "a layer with a state of {} bytes and {} KV heads; it has one or the other, and a state "
                      "of at most {} bytes", shape.state_bytes, shape.kv_heads, kMaxStateBytes);
  }
  if (std::max(shape.key_dim, shape.value_dim) > kMaxHeadDim) {
    return make_error(ErrorCode::unsupported, "attention heads of {} dimensions; the KV cache holds up to {}",
                      std::max(shape.key_dim, shape.value_dim), kMaxHeadDim);
  }
  if (shape.kv_heads == 0 || shape.key_dim == 0 || shape.value_dim == 0) {
    return make_error(ErrorCode::invalid_argument, "a layer of {} KV heads of {} and {} dimensions has nothing to hold",
                      shape.kv_heads, shape.key_dim, shape.value_dim);
  }
  if (shape.values == kv::Values::in_keys && (shape.value_dim > shape.key_dim || (shape.key_dim - shape.value_dim) % 2 != 0)) {
    return make_error(ErrorCode::invalid_argument, "values of {} dimensions cannot be the last ones of keys of {}, at an even place",
                      shape.value_dim, shape.key_dim);
  }
  return {};
}

Status check_type(DType dtype) {
  if (kv::is_kv_type(dtype)) return {};
  return make_error(ErrorCode::unsupported, "a KV cache of type {} is not available; choose f32, f16, bf16, int8, fp8, int4 or k8v4",
                    to_string(dtype));
}

// Checks that the KV type suits the layer. Error: unsupported if the values are a part of the keys (latent attention) and the type has a
// scale. Reason: the whole key would share one scale, but the numbers of the values and the other numbers of the key differ in magnitude,
// so too much precision would be lost.
Status check_fits(const KvLayerShape& shape, DType dtype) {
  bool has_scale = false;
  kv::visit(dtype, kv::KeyOrValue::key, [&]<class C>(std::type_identity<C>) { has_scale = C::has_scale; });
  if (shape.values != kv::Values::in_keys || !has_scale) return {};
  return make_error(ErrorCode::unsupported, "a KV cache of type {} is not available for latent attention; choose f32, f16 or bf16",
                    to_string(dtype));
}

// Adds a recurrent layer to the group: its state is placed after the other layers' states in the page.
Status add_state(KvGroup& group, const KvLayerShape& shape) {
  const auto bytes = checked_align(shape.state_bytes, kBlockAlignment);
  const auto end = bytes ? checked_add(group.page_bytes, *bytes) : std::nullopt;
  if (!end) return make_error(ErrorCode::invalid_argument, "the states of this model are too large to address");
  group.layers.push_back({.shape = shape, .dtype = DType::f32, .state_offset = group.page_bytes});
  group.page_bytes = *end;
  return {};
}

// Adds an attention layer to the group: its blocks are placed after the other layers' blocks in the page.
Status add_layer(KvGroup& group, const KvLayerShape& shape, DType dtype, const KvLayout& layout) {
  // The bytes of one block cannot overflow, because dimensions are at most kMaxHeadDim.
  const std::uint64_t k = kv_block_bytes(dtype, kv::KeyOrValue::key, shape.key_dim, layout.page_tokens);
  const bool in_keys = shape.values == kv::Values::in_keys;
  const std::uint64_t v = in_keys ? 0 : kv_block_bytes(dtype, kv::KeyOrValue::value, shape.value_dim, layout.page_tokens);
  const auto heads = checked_multiply(k + v, shape.kv_heads);
  const auto end = heads ? checked_add(group.page_bytes, *heads) : std::nullopt;
  // The sum of the bytes of one page of each group must not overflow either.
  if (!end || !checked_add(layout.page_bytes(), *heads)) {
    return make_error(ErrorCode::invalid_argument, "a KV page of this model is too large to address");
  }
  // If the values are a part of the keys, they are the key's last dimensions. `before`: bytes of the key block before these dimensions.
  const std::uint64_t before = kv::block_bytes(dtype, kv::KeyOrValue::key, layout.page_tokens, shape.key_dim - (in_keys ? shape.value_dim : 0));
  group.layers.push_back({.shape = shape,
                          .dtype = dtype,
                          .k_offset = group.page_bytes,
                          .v_offset = group.page_bytes + (in_keys ? before : shape.kv_heads * k),
                          .k_stride = k,
                          .v_stride = in_keys ? k : v});
  group.page_bytes = *end;
  return {};
}

}  // namespace

std::span<const DType> kv_types() noexcept { return kTypes; }
std::uint64_t kv_block_bytes(DType type, kv::KeyOrValue part, std::uint64_t head_dim, std::uint64_t page_tokens) noexcept {
  return (kv::block_bytes(type, part, page_tokens, head_dim) + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

bool has_same_types(const KvLayout& a, const KvLayout& b) noexcept {
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    if (a.layer(i).dtype != b.layer(i).dtype) return false;
  }
  return true;
}

Result<KvLayout> make_kv_layout(std::span<const KvLayerNeeds> layers, DType dtype, std::uint32_t page_tokens) noexcept {
  return detail::guard([&]() -> Result<KvLayout> {
    TESSERA_TRY_STATUS(check_type(dtype));
    if (page_tokens != 16 && page_tokens != 32 && page_tokens != 64) {
      return make_error(ErrorCode::invalid_argument, "a KV page holds 16, 32 or 64 tokens, not {}", page_tokens);
    }
    if (layers.size() > std::numeric_limits<std::uint16_t>::max()) {
      return make_error(ErrorCode::unsupported, "{} layers; the KV cache holds up to {}", layers.size(),
                        std::numeric_limits<std::uint16_t>::max());
    }
    KvLayout layout{.dtype = dtype, .page_tokens = page_tokens, .groups = {}, .layers = {},
                    .state_pages = std::max(1u, kStateTokens / page_tokens)};
    layout.layers.reserve(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const KvLayerNeeds& layer = layers[i];
      if (layer.shares != KvLayerNeeds::kOwn) {
        const bool fits = layer.shares < i && layers[layer.shares].shape == layer.shape &&
                          layers[layer.shares].window == layer.window && layers[layer.shares].dtype == layer.dtype;
        if (!fits) {
          return make_error(ErrorCode::invalid_argument,
                            "layer {} shares the keys and values of layer {}, which must be an earlier one of the same "
                            "shape, window and type",
                            i, layer.shares);
        }
        layout.layers.push_back(layout.layers[layer.shares]);
        continue;
      }
      TESSERA_TRY_STATUS(check(layer.shape));
      const DType type = layer.dtype != DType::automatic ? layer.dtype : dtype;
      TESSERA_TRY_STATUS(check_type(type));
      TESSERA_TRY_STATUS(check_fits(layer.shape, type));
      const bool is_recurrent = layer.shape.state_bytes != 0;
      if (is_recurrent && layer.window != 0) {
        return make_error(ErrorCode::invalid_argument, "layer {} has a state, and a window of {}; it has one or the other", i, layer.window);
      }
      const KvGroupKind kind = is_recurrent ? KvGroupKind::recurrent : KvGroupKind::keys_values;
      auto group = std::ranges::find_if(layout.groups, [&](const KvGroup& g) { return g.kind == kind && g.window == layer.window; });
      if (group == layout.groups.end()) {
        group = layout.groups.insert(group, KvGroup{.layers = {}, .window = layer.window, .page_bytes = 0, .kind = kind});
      }
      TESSERA_TRY_STATUS(is_recurrent ? add_state(*group, layer.shape) : add_layer(*group, layer.shape, type, layout));
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
