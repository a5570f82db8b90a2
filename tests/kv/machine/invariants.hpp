// What must hold between any two operations.
#pragma once

#include "machine.hpp"

namespace tessera::tests {

inline detail::Pool* Machine::pool_of(const KvLayout& layout) const {
  for (const auto& pool : pools_->state()->pools) {
    if (pool->layout() == layout) return pool.get();
  }
  return nullptr;
}

inline detail::PageId Machine::id_of(const detail::Pool& pool, const std::byte* page) {
  for (detail::PageId id = 0; id < pool.ids(); ++id) {
    if (pool.address(id) == page) return id;
  }
  throw Broken("a cache holds a page that its pool does not know");
}

// The pool's own account, and its references against the page tables of all caches.
inline void Machine::check_pages_of(const detail::Pool& pool) {
  if (const std::string wrong = pool.check(); !wrong.empty()) throw Broken(wrong);
  held_.clear();
  for (const Twin& twin : caches_) {
    if (twin.kind != KvKind::paged || twin.suspended || twin.layout.page_tokens != pool.layout().page_tokens ||
        twin.layout.dtype != pool.layout().dtype) {
      continue;
    }
    const auto pages = twin.pages().subspan(twin.first_page());
    held_.insert(held_.end(), pages.begin(), pages.end());
  }
  std::ranges::sort(held_);
  std::size_t distinct = 0, holders = 0;
  for (detail::PageId id = 0; id < pool.ids(); ++id) {
    const auto of = std::ranges::equal_range(held_, pool.address(id));
    if (pool.address(id) == nullptr) continue;  // its slab was given back
    expect(pool.references(id) == of.size(), "page {} has {} references and {} holders", id, pool.references(id),
           of.size());
    distinct += of.empty() ? 0 : 1;
    holders += of.size();
    counts_.most_sharers = std::max<std::uint64_t>(counts_.most_sharers, of.size());
  }
  expect(holders == held_.size(), "{} page table entries point to no page of the pool", held_.size() - holders);
  expect(distinct == pool.used(), "{} pages are held and {} are used", distinct, pool.used());
}

inline void Machine::check_pools() {
  for (const Twin& twin : caches_) check_state(twin);  // first: what follows reads as many pages as the twins have
  for (const auto& pool : pools_->state()->pools) check_pages_of(*pool);
  const KvFigures figures = pools_->figures();
  expect(figures.used_bytes + figures.cached_bytes + figures.free_bytes == figures.held_bytes,
         "{} bytes used + {} cached + {} free are not {} held", figures.used_bytes, figures.cached_bytes,
         figures.free_bytes, figures.held_bytes);
  expect(figures.held_bytes == memory_.allocated(), "{} bytes are held, {} allocated", figures.held_bytes,
         memory_.allocated());
  expect(options_.budget == 0 || figures.held_bytes <= options_.budget, "{} bytes are held, of a budget of {}",
         figures.held_bytes, options_.budget);
  expect(figures.copies == copies_, "{} copies, not {}", copies_, figures.copies);
  expect(figures.hits == hits_, "{} prefix hits, not {}", hits_, figures.hits);
  expect(figures.tokens_saved == tokens_saved_, "{} tokens saved, not {}", tokens_saved_, figures.tokens_saved);

  std::uint64_t committed = 0, reserved = 0;
  for (const Twin& twin : caches_) {
    if (twin.kind != KvKind::contiguous) continue;
    committed += twin.cache.bytes();
    reserved += (twin.layout.pages(twin.capacity) * twin.layout.page_bytes + CheckedMemory::kGranule - 1) /
                CheckedMemory::kGranule * CheckedMemory::kGranule;
  }
  expect(committed == memory_.committed(), "contiguous caches say {} bytes, not {}", committed, memory_.committed());
  expect(reserved == memory_.reserved(), "{} bytes are reserved, not {}", memory_.reserved(), reserved);
  expect(memory_.makes_sense(), "memory was committed or given back twice");
}

// After pages went back: what nobody uses is within what is to be kept.
inline void Machine::check_settled() const {
  const KvFigures figures = pools_->figures();
  expect(figures.cached_bytes == 0 || figures.used_bytes + figures.cached_bytes <= options_.keep,
         "{} bytes used and {} cached, {} to be kept", figures.used_bytes, figures.cached_bytes, options_.keep);
  if (figures.held_bytes <= options_.keep) return;
  std::uint64_t most = 0;  // if every slab has a page that is not free
  for (const auto& pool : pools_->state()->pools) most += (pool->used() + pool->cached()) * pool->slab_bytes();
  expect(figures.held_bytes <= most, "a slab of free pages is held beyond what is to be kept");
}

inline void Machine::check_state(const Twin& twin) const {
  const KvCache& cache = twin.cache;
  expect(cache.length() == twin.length(), "the length is {}, not {}", cache.length(), twin.length());
  expect(cache.first() == twin.first, "the first position held is {}, not {}", cache.first(), twin.first);
  expect(cache.edited() == twin.edited, "edited is {}", cache.edited());
  expect(cache.capacity() == twin.capacity && cache.kind() == twin.kind, "capacity or kind has changed");
  expect(twin.first == 0 || twin.first <= twin.first_seen_from(twin.length()), "the window dropped what is to be seen");
  expect(cache.suspended() == twin.suspended, "suspended is {}", cache.suspended());
  if (twin.suspended) return;
  const std::uint64_t bytes = (twin.end_page() - twin.first_page()) * twin.layout.page_bytes;
  const std::uint64_t slack = twin.kind == KvKind::paged ? 1 : 2 * CheckedMemory::kGranule;
  expect(cache.bytes() >= bytes && cache.bytes() < bytes + slack, "{} bytes, not {}", cache.bytes(), bytes);
  const auto pages = twin.pages();
  for (std::uint64_t i = 0; i < pages.size(); ++i) {
    expect((pages[i] == nullptr) == (i < twin.first_page()), "page {} of {} is wrongly given back or held", i,
           pages.size());
    if (twin.kind == KvKind::paged || i <= twin.first_page()) continue;
    expect(pages[i] == pages[i - 1] + twin.layout.page_bytes, "page {} does not follow page {}", i, i - 1);
  }
}

inline void Machine::check_records(const Twin& twin) {
  if (twin.suspended) return;
  const auto held = std::span(twin.stamps).subspan(twin.first);
  const std::uint64_t wrong = records_.first_wrong(twin.cache, twin.first, held);
  expect(wrong == twin.length(), "position {} of {} does not hold what was written there", wrong, twin.length());
}

inline void Machine::check_all_records() {
  for (const Twin& twin : caches_) check_records(twin);
}

}  // namespace tessera::tests
