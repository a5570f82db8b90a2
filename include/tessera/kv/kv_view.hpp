// Where a key or a value lies. This is the only address arithmetic of the KV cache: whoever writes or reads K and V
// calls it, on every backend.
//
// A page holds page_tokens tokens of all layers, as blocks [layer][k|v][kv_head]. A block's inner layout is the codec's:
// for F32 and F16 a K block is [head_dim][page_tokens] (the lanes of a score kernel are keys) and a V block is
// [page_tokens][head_dim] (the lanes of the weighted sum are dimensions).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/core/dtype.hpp>

namespace tessera {

// What of a layer's attention the cache depends on.
struct KvLayerShape {
  std::uint32_t kv_heads = 0;
  std::uint32_t key_dim = 0;    // of one head
  std::uint32_t value_dim = 0;  // of one head

  bool operator==(const KvLayerShape&) const noexcept = default;
};

// Byte offsets inside a page of one layer's blocks.
struct KvLayerLayout {
  KvLayerShape shape;
  std::uint64_t k_offset = 0, v_offset = 0;  // of head 0
  std::uint64_t k_stride = 0, v_stride = 0;  // from head to head
};

struct KvLayout {
  DType dtype = DType::f32;
  std::uint32_t page_tokens = 0;
  std::uint64_t page_bytes = 0;
  std::vector<KvLayerLayout> layers;

  // The codec's bytes of one token in all layers, K and V.
  [[nodiscard]] std::uint64_t bytes_per_token() const noexcept { return page_bytes / page_tokens; }
};

// One sequence's pages, readable and writable. Valid while its KvCache lives and is not truncated.
struct KvView {
  const KvLayout* layout = nullptr;
  std::byte* const* pages = nullptr;  // page i holds positions [i * page_tokens, (i + 1) * page_tokens)

  [[nodiscard]] std::uint32_t page_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position / layout->page_tokens);
  }
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position % layout->page_tokens);
  }
  [[nodiscard]] std::byte* k_block(std::size_t layer, std::size_t kv_head, std::size_t page) const noexcept {
    const KvLayerLayout& at = layout->layers[layer];
    return pages[page] + at.k_offset + kv_head * at.k_stride;
  }
  [[nodiscard]] std::byte* v_block(std::size_t layer, std::size_t kv_head, std::size_t page) const noexcept {
    const KvLayerLayout& at = layout->layers[layer];
    return pages[page] + at.v_offset + kv_head * at.v_stride;
  }
};

}  // namespace tessera
