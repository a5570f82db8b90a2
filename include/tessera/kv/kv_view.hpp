// Where a key or a value lies. This is the only address arithmetic of the KV cache: whoever writes or reads K and V
// calls it, on every backend, paged or contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

// Where a step's rows leave the states of recurrent layers. Rows are written here and not over what the sequence has, so that
// a step that fails leaves that as it was; KvCache::commit() takes what has been written.
struct KvStateTargets {
  std::uint64_t length = 0;      // tokens of the sequence before the step
  std::uint64_t first_page = 0;  // the page of the step's first row
  std::uint64_t exact_from = ~std::uint64_t{0};  // rows from this position on are drafts: the state behind each is kept
  std::vector<std::byte*> pages;   // [page - first_page]: behind the page's last row that is no draft; nullptr: not kept
  std::vector<std::byte*> drafts;  // [position - exact_from]
};

// One sequence's pages, readable and writable by whoever can address their memory (KvCache::memory()). Valid until its
// KvCache is next changed.
struct KvView {
  const KvLayout* layout = nullptr;
  // [group][page]. Page i holds positions [i * page_tokens, (i + 1) * page_tokens). nullptr: given back, because the
  // group's window has passed it; of recurrent layers: no state is kept there.
  std::byte* const* const* pages = nullptr;
  const KvStateTargets* targets = nullptr;  // of a layout that has states, once KvCache::reserve() has made room

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
            .dtype = layout->layer(layer).dtype,
            .page_tokens = layout->page_tokens};
  }
  [[nodiscard]] std::byte* k_block(std::size_t layer, std::size_t kv_head, std::size_t page) const noexcept {
    return this->layer(layer).k_block(kv_head, page);
  }
  [[nodiscard]] std::byte* v_block(std::size_t layer, std::size_t kv_head, std::size_t page) const noexcept {
    return this->layer(layer).v_block(kv_head, page);
  }

  // Of a recurrent layer: its state behind the row at `position` is to be written here. Rows that follow each other may
  // have the same address: then the later one's state takes the place of the earlier one's. A step's last row, and those at
  // whose end a state is kept, have an address that no later row has.
  [[nodiscard]] std::byte* state_after(std::size_t layer, std::uint64_t position) const noexcept {
    const std::uint64_t offset = layout->layer(layer).state_offset;
    if (position >= targets->exact_from) return targets->drafts[position - targets->exact_from] + offset;
    const bool ends_page = (position + 1) % layout->page_tokens == 0;
    std::byte* const own = ends_page ? targets->pages[position / layout->page_tokens - targets->first_page] : nullptr;
    return (own != nullptr ? own : targets->pages.back()) + offset;
  }
  // Where the state before that row is: that behind the row before it, in this step or in an earlier one. nullptr: the
  // sequence begins here, with a state of zeros.
  [[nodiscard]] const std::byte* state_before(std::size_t layer, std::uint64_t position) const noexcept {
    if (position == 0) return nullptr;
    if (targets != nullptr && position > targets->length) return state_after(layer, position - 1);
    return kept_state(layer, position);
  }
  // The state behind the sequence's first `tokens` tokens, above 0, where the cache holds one (KvCache::states()).
  [[nodiscard]] std::byte* kept_state(std::size_t layer, std::uint64_t tokens) const noexcept {
    return pages[layout->layers[layer].group][(tokens - 1) / layout->page_tokens] + layout->layer(layer).state_offset;
  }
};

}  // namespace tessera
