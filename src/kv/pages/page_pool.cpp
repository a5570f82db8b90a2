#include "kv/pages/page_pool.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {

PagePool::PagePool(KvPools::State& all, std::uint64_t page_bytes)
    : all_(all), page_bytes_(page_bytes), slab_pages_(kv_slab_pages(page_bytes, all.options)) {}

PagePool::~PagePool() {
  for (const Slab& slab : slabs_) {
    if (slab.base != nullptr) all_.options.memory->release(slab.base, slab_bytes());
  }
}

void PagePool::push_back(List& list, PageId id) noexcept {
  pages_[id].previous = list.last;
  pages_[id].next = kNoPage;
  (list.last != kNoPage ? pages_[list.last].next : list.first) = id;
  list.last = id;
  ++list.size;
}

void PagePool::unlink(List& list, PageId id) noexcept {
  Page& page = pages_[id];
  (page.previous != kNoPage ? pages_[page.previous].next : list.first) = page.next;
  (page.next != kNoPage ? pages_[page.next].previous : list.last) = page.previous;
  page.previous = page.next = kNoPage;
  --list.size;
}

void PagePool::make_free(PageId id) noexcept {
  if (all_.options.freed == FreedPages::fill_nan) {
    (void)all_.options.memory->fill(pages_[id].address, 0xff, page_bytes_);  // an error is ignored: the NaNs only serve to find mistakes
  }
  --slabs_[id / slab_pages_].busy;
  push_back(free_, id);
}

void PagePool::put_down(PageId id) noexcept {
  --used_;
  if (const IndexedPage* indexed = pages_[id].indexed; indexed != nullptr) push_back(list_of(*indexed), id);
  else make_free(id);
}

Status PagePool::grow() {
  auto slab = std::find_if(slabs_.begin(), slabs_.end(), [](const Slab& s) { return s.base == nullptr; });
  if (slab == slabs_.end()) {
    slabs_.reserve(slabs_.size() + 1);
    pages_.resize(pages_.size() + slab_pages_);
    slab = slabs_.insert(slabs_.end(), Slab{});
  }
  auto* base = static_cast<std::byte*>(all_.options.memory->allocate(slab_bytes()));
  if (base == nullptr) {
    return make_error(ErrorCode::out_of_memory, "no memory for {} more bytes of KV pages ({} are held)", slab_bytes(),
                      all_.figures.held_bytes);
  }
  slab->base = base;
  slab->busy = 0;
  all_.figures.held_bytes += slab_bytes();
  const auto first = static_cast<PageId>(static_cast<std::uint64_t>(slab - slabs_.begin()) * slab_pages_);
  for (std::uint64_t i = 0; i < slab_pages_; ++i) {
    const PageId id = first + static_cast<PageId>(i);
    pages_[id].address = base + i * page_bytes_;
    push_back(free_, id);
  }
  return {};
}

Status PagePool::provide(std::size_t n, std::unique_lock<std::mutex>& lock) {
  // When all pools together hold as much memory as may be kept (options.keep), cached pages are evicted rather than new memory taken.
  const auto within_keep = [&] { return all_.figures.held_bytes + slab_bytes() <= all_.options.keep; };
  while (free_.size < n) {
    if (!within_keep() && cached() > 0) {
      // If no cached page of this pool has a copy in the page file yet, one is written and waited for, because evicting a page without a
      // copy loses its contents.
      if (clean_.size == 0 && write_behind(0)) all_.written.wait(lock);
      else evict_one();
    } else if (all_.make_room(slab_bytes(), *this)) {
      // The budget has room for another slab, so the pool takes a slab from Memory. If Memory has none: evicts a cached page of this pool.
      // If this pool has no cached page either: has the other pools give back their cached and free pages, then tries again.
      if (Status status = grow(); !status && !evict_one() && !all_.reclaim(*this)) return status;
    } else if (all_.writing > 0) {
      all_.written.wait(lock);  // a page that has been written can be evicted
    } else {
      return make_error(ErrorCode::cache_full, "no room for {} pages of {} bytes", n, page_bytes_);
    }
  }
  return {};
}

PageId PagePool::take() noexcept {
  const PageId id = free_.first;
  unlink(free_, id);
  pages_[id].references = 1;
  ++slabs_[id / slab_pages_].busy;
  ++used_;
  return id;
}

void PagePool::put_back(PageId id) noexcept {
  pages_[id].references = 0;
  --used_;
  make_free(id);
}

void PagePool::share(PageId id) noexcept {
  if (pages_[id].references++ > 0) return;
  unlink(list_of(*pages_[id].indexed), id);
  ++used_;
}

void PagePool::share(std::span<const PageId> ids) noexcept {
  for (const PageId id : ids) {
    if (id != kNoPage) share(id);
  }
}

void PagePool::release(std::span<const PageId> ids) noexcept {
  // A sequence's last page is released first, so that the beginnings of cached sequences are evicted last.
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    if (*id != kNoPage && --pages_[*id].references == 0) put_down(*id);
  }
  all_.settle();
  write_behind(all_.options.keep / 4 * 3);
}

bool PagePool::make_private(PageId id) noexcept {
  if (pages_[id].references != 1) return false;
  if (pages_[id].indexed != nullptr) all_.lose(*pages_[id].indexed);
  return true;
}

void PagePool::attach(IndexedPage& indexed, PageId id) noexcept {
  indexed.id = id;
  pages_[id].indexed = &indexed;
  all_.index.count_empty(*indexed.node);
}

void PagePool::detach(IndexedPage& indexed) noexcept {
  if (const PageId id = indexed.id; id != kNoPage) {
    pages_[id].indexed = nullptr;
    indexed.id = kNoPage;
    if (pages_[id].references == 0) {
      unlink(list_of(indexed), id);
      make_free(id);
    }
  }
  if (indexed.stored != nullptr) remove_copy(indexed);
}

bool PagePool::evict_one() noexcept {
  if (clean_.size > 0) {
    const PageId id = clean_.first;
    unlink(clean_, id);
    pages_[id].indexed->id = kNoPage;
    pages_[id].indexed = nullptr;
    make_free(id);
    return true;
  }
  if (cached_.size == 0) return false;
  const std::size_t before = all_.cached_pages();
  all_.lose(*pages_[cached_.first].indexed);
  all_.figures.evictions += before - all_.cached_pages();
  return true;
}

void PagePool::release_slabs(std::uint64_t target) noexcept {
  for (std::size_t i = 0; i < slabs_.size() && all_.figures.held_bytes > target; ++i) {
    if (slabs_[i].base == nullptr || slabs_[i].busy > 0) continue;
    for (std::uint64_t j = 0; j < slab_pages_; ++j) {
      const auto id = static_cast<PageId>(i * slab_pages_ + j);
      unlink(free_, id);
      pages_[id].address = nullptr;
    }
    all_.options.memory->release(slabs_[i].base, slab_bytes());
    slabs_[i].base = nullptr;
    all_.figures.held_bytes -= slab_bytes();
  }
}

std::string PagePool::check() const {
  std::vector<std::uint8_t> seen(pages_.size(), 0);
  const auto walk = [&](const List& list, std::uint8_t mark) -> std::string {
    std::size_t n = 0;
    for (PageId id = list.first; id != kNoPage; id = pages_[id].next, ++n) {
      if (seen[id] != 0) return fmt::format("page {} is in two lists", id);
      if (pages_[id].references != 0) return fmt::format("page {} is in a list and used", id);
      if ((pages_[id].indexed != nullptr) != (mark == 2)) return fmt::format("page {} is in the wrong list", id);
      seen[id] = mark;
    }
    return n == list.size ? "" : fmt::format("a list of {} pages says {}", n, list.size);
  };
  if (auto wrong = walk(free_, 1); !wrong.empty()) return wrong;
  if (auto wrong = walk(cached_, 2); !wrong.empty()) return wrong;
  if (auto wrong = walk(clean_, 2); !wrong.empty()) return wrong;
  std::size_t used = 0, in_slabs = 0;
  for (const Slab& slab : slabs_) in_slabs += slab.base != nullptr ? slab_pages_ : 0;
  for (PageId id = 0; id < pages_.size(); ++id) {
    used += pages_[id].references > 0 ? 1 : 0;
    if (pages_[id].references > 0 && seen[id] != 0) return fmt::format("page {} is used and in a list", id);
    if (pages_[id].address == nullptr && (seen[id] != 0 || pages_[id].references > 0)) {
      return fmt::format("page {} has no memory", id);
    }
    if (const IndexedPage* indexed = pages_[id].indexed; indexed != nullptr) {
      if (indexed->id != id || indexed->pool != this) return fmt::format("page {} has another's entry in the index", id);
    }
  }
  if (used != used_) return fmt::format("{} pages are used, not {}", used, used_);
  if (used + free_.size + cached() != in_slabs) {
    return fmt::format("{} used + {} free + {} cached pages are not {}", used, free_.size, cached(), in_slabs);
  }
  return "";
}

}  // namespace tessera::detail
