// The layout of a sequence's cache. Layers with the same window and kind are a group. Each group has its own page tables, because a group
// with a sliding window frees old pages while a group without a window keeps all pages. Page i of every group holds the tokens
// [i * page_tokens, (i + 1) * page_tokens) of all layers of the group, as blocks [layer][k|v][kv_head]. src/kv/block.hpp has a block's
// inner layout.
//
// Recurrent layers are one group. They have a state instead of keys and values, and each token changes the state. Page i of this group
// holds the states of all recurrent layers after the last computed token in positions [i * page_tokens, (i + 1) * page_tokens). While some
// of these positions have no token, page i is the sequence's live state. Afterwards page i no longer changes and is a *checkpoint*. Only
// some checkpoints are kept (KvCacheOptions::checkpoints, state_pages).
//
// A model's layer finds its keys and values by its place: a group, and an index in the group. Layers that share keys and values
// have the same place.
//
//   const tessera::KvLayerShape shape{.kv_heads = 8, .key_dim = 128, .value_dim = 128};
//   auto layout = tessera::make_kv_layout(std::vector(32, shape), tessera::DType::f16);  // 32 layers
//   if (layout) std::printf("%llu bytes a token\n", static_cast<unsigned long long>(layout->bytes_per_token()));
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

namespace tessera {

inline constexpr std::uint32_t kDefaultPageTokens = 32;
inline constexpr std::uint32_t kMaxHeadDim = 4096;
inline constexpr std::uint32_t kStateTokens = 256;  // tokens between two states that other sequences may find

namespace kv {
enum class KeyOrValue : std::uint8_t { key = 0, value = 1 };

// The place where a layer's values are stored.
enum class Values : std::uint8_t {
  beside_keys = 0,
  in_keys = 1,  // the last value_dim numbers of each key are the value: latent attention stores one vector a token for both
};
}  // namespace kv

// Returns the types that a cache can hold.
[[nodiscard]] std::span<const DType> kv_types() noexcept;
// Returns the bytes of a block: one head's keys or values of a page's tokens, with scales. 0 if a cache cannot hold the type.
[[nodiscard]] std::uint64_t kv_block_bytes(DType type, kv::KeyOrValue part, std::uint64_t head_dim, std::uint64_t page_tokens) noexcept;

// The sizes of a layer, from which the bytes of a token are computed.
struct KvLayerShape {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;    // numbers of one head's key
  std::uint32_t value_dim = 0;  // numbers of one head's value
  std::uint64_t state_bytes = 0;  // bytes of a recurrent layer's state, which is f32; 0: the layer has keys and values
  kv::Values values = kv::Values::beside_keys;

  // Returns the parts that the cache stores for each token and head, in the order in which they are stored.
  [[nodiscard]] std::span<const kv::KeyOrValue> parts() const noexcept {
    static constexpr std::array kParts = {kv::KeyOrValue::key, kv::KeyOrValue::value};
    return std::span(kParts).first(values == kv::Values::in_keys ? 1 : 2);
  }
  [[nodiscard]] std::uint32_t dim(kv::KeyOrValue part) const noexcept { return part == kv::KeyOrValue::key ? key_dim : value_dim; }
  // Returns the number of dimensions of a value that is stored beside its key; 0 if values are part of the keys.
  [[nodiscard]] std::uint32_t own_value_dim() const noexcept { return values == kv::Values::in_keys ? 0 : value_dim; }

  bool operator==(const KvLayerShape&) const noexcept = default;
};

// A layer's requirements, from which make_kv_layout() makes a layout.
struct KvLayerNeeds {
  static constexpr std::uint32_t kOwn = ~std::uint32_t{0};

  KvLayerShape shape;
  std::uint64_t window = 0;     // keys that a token sees, its own included; 0: all
  DType dtype = DType::automatic;  // type of keys and values; automatic: the layout's type
  std::uint32_t shares = kOwn;  // an earlier layer of equal shape, window and type, whose keys and values this layer reads
};

// The byte offsets of one layer's blocks inside a page.
struct KvLayerLayout {
  KvLayerShape shape;
  DType dtype = DType::f32;                  // type of the layer's keys and values
  std::uint64_t k_offset = 0, v_offset = 0;  // offsets of head 0
  std::uint64_t k_stride = 0, v_stride = 0;  // bytes from one head's block to the next head's
  std::uint64_t state_offset = 0;            // offset of a recurrent layer's state

  bool operator==(const KvLayerLayout&) const noexcept = default;
};

// The content of a group's pages.
enum class KvGroupKind : std::uint8_t {
  keys_values = 0,  // a key and a value of each head and token
  recurrent = 1,    // the states of recurrent layers after a page's last token
};

struct KvGroup {
  std::vector<KvLayerLayout> layers;
  std::uint64_t window = 0;      // position p sees keys p - window + 1 .. p; 0: all keys
  std::uint64_t page_bytes = 0;
  KvGroupKind kind = KvGroupKind::keys_values;

  [[nodiscard]] bool is_recurrent() const noexcept { return kind == KvGroupKind::recurrent; }
  bool operator==(const KvGroup&) const noexcept = default;
};

struct KvPlace {
  std::uint16_t group = 0;  // index into KvLayout::groups
  std::uint16_t layer = 0;  // index into KvGroup::layers

  bool operator==(const KvPlace&) const noexcept = default;
};

struct KvLayout {
  DType dtype = DType::f32;  // type of layers that set none of their own; layer() has each layer's type
  std::uint32_t page_tokens = 0;
  std::vector<KvGroup> groups;
  std::vector<KvPlace> layers;  // [layer of the model]: place of the layer's keys and values
  std::uint32_t state_pages = 0;  // pages between two states that other sequences may find

  [[nodiscard]] const KvLayerLayout& layer(std::size_t layer) const noexcept {
    return groups[layers[layer].group].layers[layers[layer].layer];
  }
  [[nodiscard]] const KvGroup& group_of(std::size_t layer) const noexcept { return groups[layers[layer].group]; }
  // Returns the first layer from `from` on that has this place. Precondition: such a layer exists.
  [[nodiscard]] std::size_t first_layer_at(const KvPlace& place, std::size_t from = 0) const noexcept {
    while (layers[from] != place) ++from;
    return from;
  }
  // Returns whether no layer in [from, layer) has the same place as `layer`. A loop over layers uses this to visit each place once.
  [[nodiscard]] bool is_first_at_its_place(std::size_t layer, std::size_t from = 0) const noexcept {
    return first_layer_at(layers[layer], from) == layer;
  }
  // Returns the sum, over the groups that have keys and values, of the bytes of one page.
  [[nodiscard]] std::uint64_t page_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const KvGroup& group : groups) bytes += group.is_recurrent() ? 0 : group.page_bytes;
    return bytes;
  }
  // Returns the bytes of one token in all layers, keys and values, scales included. Shared places count once.
  [[nodiscard]] std::uint64_t bytes_per_token() const noexcept { return page_bytes() / page_tokens; }
  // Returns the bytes of one state of all recurrent layers; 0 without recurrent layers.
  [[nodiscard]] std::uint64_t state_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const KvGroup& group : groups) bytes += group.is_recurrent() ? group.page_bytes : 0;
    return bytes;
  }
  [[nodiscard]] bool has_state() const noexcept { return state_group() < groups.size(); }
  // Returns the index of the recurrent layers' group; groups.size() if the model has no recurrent layers.
  [[nodiscard]] std::size_t state_group() const noexcept {
    std::size_t group = 0;
    while (group < groups.size() && !groups[group].is_recurrent()) ++group;
    return group;
  }
  // Returns the number of pages that `tokens` tokens need in a group.
  [[nodiscard]] std::uint64_t pages(std::uint64_t tokens) const noexcept {
    return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
  }
  bool operator==(const KvLayout&) const noexcept = default;
};

// Returns whether the layers of two layouts of one model have the same types.
[[nodiscard]] bool has_same_types(const KvLayout& a, const KvLayout& b) noexcept;

// Makes a layout. Groups are in the order of their first layers. Errors:
//   unsupported       a dtype that the cache cannot hold, or cannot hold in layers of latent attention; a head of more than kMaxHeadDim
//                     numbers; more than 65,535 layers
//   invalid_argument  a page_tokens that is not 16, 32 or 64; a head of 0 numbers; values that cannot be the last numbers of their keys
//                     (kv::Values::in_keys); a layer with both heads and a state, or with a state and a window; a layer that shares with
//                     a later layer, or with a layer of another shape, window or type; a page too large to address
[[nodiscard]] Result<KvLayout> make_kv_layout(std::span<const KvLayerNeeds> layers, DType dtype,
                                              std::uint32_t page_tokens = kDefaultPageTokens) noexcept;
// Makes a layout for layers that see all keys and share no keys and values with each other. All layers are one group.
[[nodiscard]] Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype,
                                              std::uint32_t page_tokens = kDefaultPageTokens) noexcept;

}  // namespace tessera
