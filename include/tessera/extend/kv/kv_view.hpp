// Computes the addresses of keys and values. All code that writes or reads keys and values uses these functions, on every backend, for
// paged and contiguous caches. No other code computes such addresses, so the layout of pages is known in one place.
//
//   const KvView view = session.kv().view();
//   const std::byte* keys = view.k_block(layer, kv_head, view.page_of(position));  // a block of page_tokens keys
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/extend/kv/kv_layout.hpp>

namespace tessera {

// The addresses of one layer of one sequence. A loop over many tokens of a layer should call KvView::layer() once, before the loop.
struct KvLayerView {
  const KvLayerLayout* layout = nullptr;
  std::byte* const* pages = nullptr;  // pages of the layer's group, as in KvView::pages
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

// The addresses to which a step's rows write states of recurrent layers. Rows do not overwrite the sequence's own states, so that a step
// that fails leaves the sequence as it was. KvCache::commit() makes the written states the sequence's own.
struct KvStateTargets {
  std::uint64_t length = 0;      // tokens of the sequence before the step
  std::uint64_t first_page = 0;  // index of the page of the step's first row
  std::uint64_t exact_from = ~std::uint64_t{0};  // rows from this position on are drafts; the state after each draft is kept
  // [page - first_page]: address of the state after the page's last row that is not a draft; nullptr: this state is not kept
  std::vector<std::byte*> pages;
  std::vector<std::byte*> drafts;  // [position - exact_from]: address of the state after the draft at this position
};

// One sequence's pages, for code that can address their memory (KvCache::memory()). Valid until the KvCache is next changed.
struct KvView {
  const KvLayout* layout = nullptr;
  // [group][page]. Page i holds positions [i * page_tokens, (i + 1) * page_tokens). nullptr: the page was freed because the group's window
  // has passed it; in the recurrent layers' group: no state is kept there.
  std::byte* const* const* pages = nullptr;
  const KvStateTargets* targets = nullptr;  // set by KvCache::reserve() in layouts with states

  [[nodiscard]] std::uint32_t page_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position / layout->page_tokens);
  }
  [[nodiscard]] std::uint32_t slot_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position % layout->page_tokens);
  }
  // Returns the view of one layer; `layer` is its index in the model.
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

  // Returns the address to which a recurrent layer writes its state after the row at `position`. If the row is a draft: an address that
  // only this draft has. If the row is the last of a page whose state is kept: the address of this page's state. Otherwise: an address that
  // all other rows of the step share, so that each state replaces the state of the row before. In the end the shared address holds the
  // state after the last row that is not a draft.
  [[nodiscard]] std::byte* state_after(std::size_t layer, std::uint64_t position) const noexcept {
    const std::uint64_t offset = layout->layer(layer).state_offset;
    if (position >= targets->exact_from) return targets->drafts[position - targets->exact_from] + offset;
    const bool ends_page = (position + 1) % layout->page_tokens == 0;
    std::byte* const own = ends_page ? targets->pages[position / layout->page_tokens - targets->first_page] : nullptr;
    return (own != nullptr ? own : targets->pages.back()) + offset;
  }
  // Returns the address of the state before the row at `position`, which this step or an earlier step has written. nullptr: the sequence
  // begins at this row, with a state of zeros.
  [[nodiscard]] const std::byte* state_before(std::size_t layer, std::uint64_t position) const noexcept {
    if (position == 0) return nullptr;
    if (targets != nullptr && position > targets->length) return state_after(layer, position - 1);
    return kept_state(layer, position);
  }
  // Returns the address of the state after the sequence's first `tokens` tokens. Precondition: KvCache::states() contains `tokens`.
  [[nodiscard]] std::byte* kept_state(std::size_t layer, std::uint64_t tokens) const noexcept {
    return pages[layout->layers[layer].group][(tokens - 1) / layout->page_tokens] + layout->layer(layer).state_offset;
  }
};

}  // namespace tessera
