// Where a key or a value lies. This is the only address arithmetic of the KV cache: whoever writes or reads K and V
// calls it, on every backend, paged or contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/kv/kv_layout.hpp>

namespace tessera {

// One sequence's pages, readable and writable by whoever can address their memory (KvCache::memory()). Valid until its
// KvCache is next changed.
struct KvView {
  const KvLayout* layout = nullptr;
  // Page i holds positions [i * page_tokens, (i + 1) * page_tokens). nullptr: given back, because the model's window
  // has passed it.
  std::byte* const* pages = nullptr;

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
