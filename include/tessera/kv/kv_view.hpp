// Where a key or a value lies. This is the only address arithmetic of the KV cache: whoever writes or reads K and V
// calls it, on every backend, paged or contiguous.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/kv/kv_layout.hpp>

namespace tessera {

// One layer of one sequence: who goes over many tokens of it asks KvView::layer() once.
struct KvLayerView {
  const KvLayerLayout* layout = nullptr;
  std::byte* const* pages = nullptr;  // of the layer's group: see KvView
  DType dtype = DType::f32;
  std::uint32_t page_tokens = 0;

  [[nodiscard]] std::size_t page_of(std::uint64_t position) const noexcept { return position / page_tokens; }
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position % page_tokens);
  }
  [[nodiscard]] std::byte* k_block(std::size_t kv_head, std::size_t page) const noexcept {
    return pages[page] + layout->k_offset + kv_head * layout->k_stride;
  }
  [[nodiscard]] std::byte* v_block(std::size_t kv_head, std::size_t page) const noexcept {
    return pages[page] + layout->v_offset + kv_head * layout->v_stride;
  }
};

// One sequence's pages, readable and writable by whoever can address their memory (KvCache::memory()). Valid until its
// KvCache is next changed.
struct KvView {
  const KvLayout* layout = nullptr;
  // [group][page]. Page i holds positions [i * page_tokens, (i + 1) * page_tokens). nullptr: given back, because the
  // group's window has passed it.
  std::byte* const* const* pages = nullptr;

  [[nodiscard]] std::uint32_t page_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position / layout->page_tokens);
  }
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position % layout->page_tokens);
  }
  // `layer`: of the model.
  [[nodiscard]] KvLayerView layer(std::size_t layer) const noexcept {
    return {.layout = &layout->layer(layer),
            .pages = pages[layout->layers[layer].group],
            .dtype = layout->dtype,
            .page_tokens = layout->page_tokens};
  }
  [[nodiscard]] std::byte* k_block(std::size_t layer, std::size_t kv_head, std::size_t page) const noexcept {
    return this->layer(layer).k_block(kv_head, page);
  }
  [[nodiscard]] std::byte* v_block(std::size_t layer, std::size_t kv_head, std::size_t page) const noexcept {
    return this->layer(layer).v_block(kv_head, page);
  }
};

}  // namespace tessera
