// What a sequence's cache consists of. Layers with the same window and kind are a group, and each group has page tables
// of its own: a group behind a window gives its pages back while a group without one keeps all of them. A page holds
// page_tokens tokens of all layers of one group, as blocks [layer][k|v][kv_head]; a block's inner layout is in
// kv/block.hpp. Page i of every group holds the same tokens: [i * page_tokens, (i + 1) * page_tokens).
//
// Recurrent layers have no keys and values but a state, which each token changes. They are a group of their own, whose page
// i is the state of all of them behind the last of its tokens: a *checkpoint* once the page is full, and the sequence's
// live state as long as it is not. Of the full pages only some are kept (KvCacheOptions::checkpoints, state_pages).
//
// A model's layer finds its keys and values by its place, which is a group and an index in it. Layers that share keys and
// values have the same place.
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
inline constexpr std::uint32_t kStateTokens = 256;  // the state behind every so many tokens is offered to other sequences

namespace kv {
enum class Part : std::uint8_t { key = 0, value = 1 };

// Where a layer's values are.
enum class Values : std::uint8_t {
  beside_keys = 0,
  in_keys = 1,  // the last value_dim numbers of each key: what latent attention keeps of a token is both
};
}  // namespace kv

// The types that a cache can hold, and the bytes of one token's key or value of one head in one, its scale included (0
// if it is none of them).
[[nodiscard]] std::span<const DType> kv_types() noexcept;
[[nodiscard]] std::uint64_t kv_record_bytes(DType type, kv::Part part, std::uint64_t head_dim) noexcept;

// What of a layer's attention decides the bytes of a token.
struct KvLayerShape {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;    // of one head
  std::uint32_t value_dim = 0;  // of one head
  std::uint64_t state_bytes = 0;  // of a recurrent layer, which has a state of f32 and no heads; 0: keys and values
  kv::Values values = kv::Values::beside_keys;

  // What is stored of a token and head, in this order.
  [[nodiscard]] std::span<const kv::Part> parts() const noexcept {
    static constexpr std::array kParts = {kv::Part::key, kv::Part::value};
    return std::span(kParts).first(values == kv::Values::in_keys ? 1 : 2);
  }
  [[nodiscard]] std::uint32_t dim(kv::Part part) const noexcept { return part == kv::Part::key ? key_dim : value_dim; }
  // Dimensions of the values that are stored beside keys; 0: there are none.
  [[nodiscard]] std::uint32_t own_value_dim() const noexcept { return values == kv::Values::in_keys ? 0 : value_dim; }

  bool operator==(const KvLayerShape&) const noexcept = default;
};

// What a model's layer asks of the cache.
struct KvLayerNeeds {
  static constexpr std::uint32_t kOwn = ~std::uint32_t{0};

  KvLayerShape shape;
  std::uint64_t window = 0;     // keys that a token sees, its own included; 0: all
  DType dtype = DType::automatic;  // automatic: the layout's
  std::uint32_t shares = kOwn;  // an earlier layer whose keys and values this one reads, of equal shape, window and type
};

// Byte offsets inside a page of one layer's blocks.
struct KvLayerLayout {
  KvLayerShape shape;
  DType dtype = DType::f32;                  // of its keys and values
  std::uint64_t k_offset = 0, v_offset = 0;  // of head 0
  std::uint64_t k_stride = 0, v_stride = 0;  // from head to head
  std::uint64_t state_offset = 0;            // of a recurrent layer's state

  bool operator==(const KvLayerLayout&) const noexcept = default;
};

// What a group's pages hold.
enum class KvGroupKind : std::uint8_t {
  keys_values = 0,  // a key and a value of each head and token
  recurrent = 1,    // the state of recurrent layers behind a page's last token
};

struct KvGroup {
  std::vector<KvLayerLayout> layers;
  std::uint64_t window = 0;      // position p sees keys p - window + 1 .. p; 0: all
  std::uint64_t page_bytes = 0;
  KvGroupKind kind = KvGroupKind::keys_values;

  [[nodiscard]] bool is_recurrent() const noexcept { return kind == KvGroupKind::recurrent; }
  bool operator==(const KvGroup&) const noexcept = default;
};

struct KvPlace {
  std::uint16_t group = 0;
  std::uint16_t layer = 0;  // in the group

  bool operator==(const KvPlace&) const noexcept = default;
};

struct KvLayout {
  DType dtype = DType::f32;  // of layers that asked for none; a layer's own is in layer()
  std::uint32_t page_tokens = 0;
  std::vector<KvGroup> groups;
  std::vector<KvPlace> layers;  // of the model
  std::uint32_t state_pages = 0;  // the state behind every so many pages is offered to other sequences

  [[nodiscard]] const KvLayerLayout& layer(std::size_t layer) const noexcept {
    return groups[layers[layer].group].layers[layers[layer].layer];
  }
  [[nodiscard]] const KvGroup& group_of(std::size_t layer) const noexcept { return groups[layers[layer].group]; }
  // The first layer from `from` on that has this place, which one has.
  [[nodiscard]] std::size_t first_layer_at(const KvPlace& place, std::size_t from = 0) const noexcept {
    while (layers[from] != place) ++from;
    return from;
  }
  // Who goes through layers from `from` on and asks comes to each place once.
  [[nodiscard]] bool is_first_at_its_place(std::size_t layer, std::size_t from = 0) const noexcept {
    return first_layer_at(layers[layer], from) == layer;
  }
  // One page of every group that has keys and values.
  [[nodiscard]] std::uint64_t page_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const KvGroup& group : groups) bytes += group.is_recurrent() ? 0 : group.page_bytes;
    return bytes;
  }
  // Of one token in all layers, K and V, scales included; what layers share counts once.
  [[nodiscard]] std::uint64_t bytes_per_token() const noexcept { return page_bytes() / page_tokens; }
  // Of a sequence's state in all recurrent layers; 0: there are none.
  [[nodiscard]] std::uint64_t state_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const KvGroup& group : groups) bytes += group.is_recurrent() ? group.page_bytes : 0;
    return bytes;
  }
  [[nodiscard]] bool has_state() const noexcept { return state_group() < groups.size(); }
  // The group of the recurrent layers, of which there is one at most; groups.size() if there is none.
  [[nodiscard]] std::size_t state_group() const noexcept {
    std::size_t group = 0;
    while (group < groups.size() && !groups[group].is_recurrent()) ++group;
    return group;
  }
  // Pages of a group that hold so many tokens.
  [[nodiscard]] std::uint64_t pages(std::uint64_t tokens) const noexcept {
    return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
  }
  bool operator==(const KvLayout&) const noexcept = default;
};

// Whether the layers of two layouts of one model have the same types.
[[nodiscard]] bool has_same_types(const KvLayout& a, const KvLayout& b) noexcept;

// Groups in the order of the first layer that is in them. Errors: a dtype that the cache cannot hold, a page that is not
// of 16, 32 or 64 tokens, heads of more than kMaxHeadDim or of nothing, a layer with heads and a
// state, or with a state and a window, a layer that shares what is not an earlier layer's of equal shape, window and type, more
// than 65,535 layers, a page too large to address.
[[nodiscard]] Result<KvLayout> make_kv_layout(std::span<const KvLayerNeeds> layers, DType dtype,
                                              std::uint32_t page_tokens = kDefaultPageTokens) noexcept;
// The same for layers that see all keys and share none: one group.
[[nodiscard]] Result<KvLayout> make_kv_layout(std::span<const KvLayerShape> layers, DType dtype,
                                              std::uint32_t page_tokens = kDefaultPageTokens) noexcept;

}  // namespace tessera
