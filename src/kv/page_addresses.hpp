// Finds the memory of pages by their numbers (StepPages).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/extend/kv/kv_view.hpp>

#include "kv/step_pages.hpp"

namespace tessera::detail {

// Makes the views (KvView) of a step's sequences. An object can be used for many steps, and reuses the memory of its lists.
class PageAddresses {
 public:
  // Begins a step: drops the views of the step before, and reserves memory for all sequences of `of`. May throw bad_alloc.
  void begin(const StepPages& of);
  // Adds the addresses of the next sequence of `of`. (The sequences are added in their order, one for each call.) Returns whether all pages
  // of the sequence were found. address(group, id) must return the address of a page, or nullptr if the page is unknown. add() does not
  // call address() for kNoPage.
  template <class Address>
  [[nodiscard]] bool add(const StepPages& of, const KvLayout& layout, Address address) noexcept {
    const SequencePages& sequence = of.sequences[views_.size()];
    const std::span<const PageId> ids = of.ids_of(sequence);
    bool all_found = true;
    std::size_t i = 0;
    const auto add_pages = [&](std::size_t group, std::size_t n) {
      for (const std::size_t end = i + n; i < end; ++i) {
        std::byte*& page = pages_[sequence.first + i];
        page = ids[i] != kNoPage ? address(group, ids[i]) : nullptr;
        all_found &= page != nullptr || ids[i] == kNoPage;
      }
    };
    for (std::size_t group = 0; group < sequence.groups; ++group) add_pages(group, sequence.pages);
    add_pages(layout.state_group(), sequence.slots.pages + sequence.slots.drafts);
    add_view(sequence, layout);
    return all_found;
  }
  // Adds the next sequence by its view, which must live until the step's end.
  void add(const KvView& view) noexcept { views_.push_back(view); }  // allocates nothing: begin() has reserved the memory

  [[nodiscard]] std::span<const KvView> views() const noexcept { return views_; }
  // Replaces the layout of each view by layout_of(its layout). The pages stay the same, but are read by the new layout.
  template <class LayoutOf>
  void replace_layouts(LayoutOf layout_of) {
    for (KvView& view : views_) view.layout = layout_of(*view.layout);
  }

 private:
  void add_view(const SequencePages& sequence, const KvLayout& layout) noexcept;

  std::vector<KvView> views_;
  std::vector<std::byte*> pages_;          // the address of the page for each number in StepPages::ids
  std::vector<std::byte* const*> tables_;  // for each sequence: the page table of each group
  std::vector<KvStateTargets> targets_;    // for each sequence that writes states
  std::size_t n_tables_ = 0, n_targets_ = 0;  // how many elements of tables_ and targets_ are filled
};

// The memory of numbered pages.
class PageMemory {
 public:
  virtual ~PageMemory() = default;
  // Copies the pages, in the order of the list.
  virtual Status copy(std::span<const PageCopy> copies) = 0;
  // Writes the addresses of all pages to `out`. The addresses stay valid until the step has been executed. Error: internal, a page number
  // is unknown. May throw bad_alloc.
  virtual Status find(const StepPages& pages, PageAddresses& out) = 0;
};

// The pages of an engine's own caches.
class CacheMemory final : public PageMemory {
 public:
  explicit CacheMemory(KvPools pools) noexcept : pools_(std::move(pools)) {}
  Status copy(std::span<const PageCopy>) override { return {}; }  // nothing to do: the caches copy their pages themselves
  Status find(const StepPages& pages, PageAddresses& out) override;

 private:
  KvPools pools_;
};

}  // namespace tessera::detail
