// The addresses of keys and values in a device's pages. Pages and blocks have the same bytes as on the host (kv/kv_layout.hpp,
// kv/block.hpp). Kernels compute addresses in the cache by these functions only.
#pragma once

#include <cstdint>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/kv/kv_layout.hpp>

#include "kv/block.hpp"

namespace tessera::cuda {

// One layer of a KvLayout, in the form that kernels read. KvTables must belong to the layer's group.
struct KvLayer {
  std::uint64_t k_offset, v_offset;  // bytes from a page's start to head 0
  std::uint64_t k_stride, v_stride;  // bytes from head to head
  std::uint32_t page_tokens;         // 16, 32 or 64
  std::uint32_t kv_heads, key_dim, value_dim;
  DType dtype;
  std::uint32_t values_in_keys = 0;  // not 0: values are the last numbers of their keys, and v_offset leads to the first of these
};

[[nodiscard]] inline KvLayer kv_layer(const KvLayout& layout, std::size_t layer) noexcept {
  const KvLayerLayout& at = layout.layer(layer);
  return {.k_offset = at.k_offset, .v_offset = at.v_offset, .k_stride = at.k_stride, .v_stride = at.v_stride,
          .page_tokens = layout.page_tokens, .kv_heads = at.shape.kv_heads, .key_dim = at.shape.key_dim,
          .value_dim = at.shape.value_dim, .dtype = at.dtype, .values_in_keys = at.shape.values == kv::Values::in_keys ? 1u : 0u};
}

// Marks a row that a kernel must leave out, because its sequence has another KV layout.
inline constexpr std::uint32_t kNoSequence = 0xffffffffu;

// The sequences and rows of a step, for the layers of one group. All pointers are device addresses.
struct KvTables {
  const std::uint64_t* pages;         // addresses of all sequences' pages, one sequence after another; 0: page was freed
  const std::uint32_t* first_page;    // [sequences]: index of the sequence's first page in `pages`; the same in every group of layers
  const std::uint32_t* row_sequence;  // [rows]; kNoSequence: left out
  const std::uint64_t* row_position;  // [rows]
  const std::uint64_t* row_end = nullptr;  // [rows]: end of the row's text (backend::RowTable::end); read only if rows see keys ahead
};

// Returns position / page_tokens, without a division.
[[nodiscard]] constexpr std::uint64_t kv_page_of(const KvLayer& layer, std::uint64_t position) noexcept {
  return position >> (layer.page_tokens == 16 ? 4 : layer.page_tokens == 32 ? 5 : 6);
}
[[nodiscard]] constexpr std::uint32_t kv_slot_of(const KvLayer& layer, std::uint64_t position) noexcept {
  return static_cast<std::uint32_t>(position) & (layer.page_tokens - 1);
}

[[nodiscard]] constexpr std::uint32_t kv_dim(const KvLayer& layer, kv::KeyOrValue part) noexcept {
  return part == kv::KeyOrValue::key ? layer.key_dim : layer.value_dim;
}

// Returns the address of a head's block of keys or values in the page at `page`.
[[nodiscard]] constexpr std::uint64_t kv_block(const KvLayer& layer, kv::KeyOrValue part, std::uint64_t page,
                                               std::uint32_t head) noexcept {
  return part == kv::KeyOrValue::key ? page + layer.k_offset + head * layer.k_stride
                               : page + layer.v_offset + head * layer.v_stride;
}

// Returns the index, in its block, of element d of the key or value of one token; `slot` is the token's place in its page. For most codecs
// element d holds dimension d. Exception: a codec that encodes several dimensions together (a run) stores other things in its elements, and
// their number is not the number of dimensions (kv::held_elements()).
template <class Codec, kv::KeyOrValue part>
[[nodiscard]] constexpr std::uint32_t kv_element(const KvLayer& layer, std::uint32_t slot, std::uint32_t d) noexcept {
  constexpr auto kPair = static_cast<std::uint32_t>(Codec::pair);
  if constexpr (part == kv::KeyOrValue::key) return (d / kPair * layer.page_tokens + slot) * kPair + d % kPair;
  else return (slot / kPair * static_cast<std::uint32_t>(kv::held_elements<Codec>(layer.value_dim)) + d) * kPair + slot % kPair;
}

// Returns the bytes from a block's start to the scale of slot 0.
template <class Codec, kv::KeyOrValue part>
[[nodiscard]] constexpr std::uint64_t kv_scales(const KvLayer& layer) noexcept {
  return kv::block_elements<Codec>(part, layer.page_tokens, kv_dim(layer, part)) * sizeof(typename Codec::Element);
}

}  // namespace tessera::cuda
