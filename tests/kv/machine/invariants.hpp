// What must hold between any two operations.
#pragma once

#include "machine.hpp"

namespace tessera::tests {

inline detail::PagePool* Machine::pool_of(const KvGroup& group) const {
  for (const auto& pool : pools_->state()->pools) {
    if (pool->page_bytes() == group.page_bytes) return pool.get();
  }
  return nullptr;
}

inline detail::PageId Machine::id_of(const detail::PagePool& pool, const std::byte* page) {
  for (detail::PageId id = 0; id < pool.ids(); ++id) {
    if (pool.address(id) == page) return id;
  }
  throw Broken("a cache holds a page that its pool does not know");
}

// The pool's own account, and its references against the page tables of all caches.
inline void Machine::check_pages_of(const detail::PagePool& pool) {
  if (const std::string wrong = pool.check(); !wrong.empty()) throw Broken(wrong);
  held_.clear();
  for (const Twin& twin : caches_) {
    if (twin.kind != KvKind::paged || twin.suspended) continue;
    for (std::size_t group = 0; group < twin.groups(); ++group) {
      if (twin.layout.groups[group].page_bytes != pool.page_bytes()) continue;
      const auto pages = twin.pages(group).subspan(std::min(twin.first_page(group), twin.end_page()));
      held_.insert(held_.end(), pages.begin(), pages.end());
    }
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
    for (const KvGroup& group : twin.layout.groups) {
      reserved += (twin.layout.pages(twin.capacity) * group.page_bytes + CheckedMemory::kGranule - 1) /
                  CheckedMemory::kGranule * CheckedMemory::kGranule;
    }
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
  expect(cache.first() == std::ranges::max(twin.first), "the first position held is {}, not {}", cache.first(),
         std::ranges::max(twin.first));
  expect(cache.edited() == twin.edited, "edited is {}", cache.edited());
  expect(cache.capacity() == twin.capacity && cache.kind() == twin.kind, "capacity or kind has changed");
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    const std::uint64_t first = twin.first[group];
    expect(cache.first_of_group(group) == first, "group {} holds from {} on, not from {}", group, cache.first_of_group(group),
           first);
    expect(first == 0 || first <= twin.first_seen_from(group, twin.length()), "the window dropped what is to be seen");
  }
  expect(cache.suspended() == twin.suspended, "suspended is {}", cache.suspended());
  if (twin.suspended) return;
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < twin.groups(); ++group) {
    const std::uint64_t page_bytes = twin.layout.groups[group].page_bytes;
    bytes += (twin.end_page() - twin.first_page(group)) * page_bytes;
    const auto pages = twin.pages(group);
    for (std::uint64_t i = 0; i < pages.size(); ++i) {
      expect((pages[i] == nullptr) == (i < twin.first_page(group)), "page {} of {} of group {} is wrongly given back or held",
             i, pages.size(), group);
      if (twin.kind == KvKind::paged || i <= twin.first_page(group)) continue;
      expect(pages[i] == pages[i - 1] + page_bytes, "page {} does not follow page {}", i, i - 1);
    }
  }
  const std::uint64_t slack = twin.kind == KvKind::paged ? 1 : 2 * twin.groups() * CheckedMemory::kGranule;
  expect(cache.bytes() >= bytes && cache.bytes() < bytes + slack, "{} bytes, not {}", cache.bytes(), bytes);
}

inline void Machine::check_records(const Twin& twin) {
  if (twin.suspended) return;
  const std::uint64_t wrong = records_.first_wrong(twin.cache, twin.first, twin.stamps);
  expect(wrong == twin.length(), "position {} of {} does not hold what was written there", wrong, twin.length());
}

inline void Machine::check_all_records() {
  for (const Twin& twin : caches_) check_records(twin);
}

}  // namespace tessera::tests
