#include "kv/pool.hpp"

#include <algorithm>

#include "support/error.hpp"

namespace tessera::detail {

Pool::Pool(KvPools::State& all, KvLayout layout)
    : all_(all),
      layout_(std::move(layout)),
      slab_pages_(kv_slab_pages(layout_, all.options)),
      index_(all.options.hash) {}

Pool::~Pool() {
  for (const Slab& slab : slabs_) {
    if (slab.base != nullptr) all_.options.memory->release(slab.base, slab_bytes());
  }
}

void Pool::push_back(List& list, PageId id) noexcept {
  pages_[id].previous = list.last;
  pages_[id].next = kNoPage;
  (list.last != kNoPage ? pages_[list.last].next : list.first) = id;
  list.last = id;
  ++list.size;
}

void Pool::unlink(List& list, PageId id) noexcept {
  Page& page = pages_[id];
  (page.previous != kNoPage ? pages_[page.previous].next : list.first) = page.next;
  (page.next != kNoPage ? pages_[page.next].previous : list.last) = page.previous;
  page.previous = page.next = kNoPage;
  --list.size;
}

void Pool::make_free(PageId id) noexcept {
  if (all_.options.freed == FreedPages::fill_nan) {
    (void)all_.options.memory->fill(pages_[id].address, 0xff, layout_.page_bytes);  // one that fails spoils nothing
  }
  --slabs_[id / slab_pages_].busy;
  push_back(free_, id);
}

// Takes a node and all below it out of the index; pages that nobody else holds become free.
void Pool::forget(PrefixNode& top) noexcept {
  index_.remove(top, [&](PrefixNode& node) {
    if (const PageId id = node.page; id != kNoPage) {
      pages_[id].node = nullptr;
      if (pages_[id].references == 0) {
        unlink(list_of(node), id);
        make_free(id);
      }
    }
    if (node.stored != nullptr) remove_copy(node);
  });
}

Status Pool::grow() {
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
    pages_[id].address = base + i * layout_.page_bytes;
    push_back(free_, id);
  }
  return {};
}

// Pages that could be had at most, if everything cached were given up.
std::uint64_t Pool::obtainable() const noexcept {
  return all_.options.budget == 0 ? UINT64_MAX : obtainable_within(all_.options.budget);
}

std::uint64_t Pool::obtainable_within(std::uint64_t limit) const noexcept {
  std::uint64_t bytes = limit - std::min(limit, all_.figures.held_bytes);
  for (const auto& pool : all_.pools) {
    if (pool.get() != this) bytes += (pool->free() + pool->cached()) * pool->page_bytes();
  }
  return free_.size + cached() + bytes / layout_.page_bytes;
}

bool Pool::within_keep(std::size_t n) const noexcept { return n <= obtainable_within(all_.options.keep); }

Error Pool::no_room(std::size_t pages) const noexcept {
  const std::uint64_t untaken = all_.options.budget - std::min(all_.options.budget, all_.figures.held_bytes);
  return make_error(ErrorCode::cache_full,
                    "{} bytes of KV pages are needed and {} are free, of a budget of {}: end or truncate a session, or "
                    "give the engine a larger KV budget",
                    pages * layout_.page_bytes, (free_.size + cached()) * layout_.page_bytes + untaken,
                    all_.options.budget);
}

Status Pool::acquire(std::span<PageId> out, std::unique_lock<std::mutex>& lock) {
  // Cached pages are cheaper than new ones once all of them are more than what may be kept.
  const auto within_keep = [&] { return all_.figures.held_bytes + slab_bytes() <= all_.options.keep; };
  if (all_.writing == 0 && out.size() > obtainable()) return no_room(out.size());  // before others lose what is cached
  while (free_.size < out.size()) {
    if (!within_keep() && cached() > 0) {
      // Rather than to lose a page, wait for a copy to be written.
      if (clean_.size == 0 && write_behind(0)) all_.written.wait(lock);
      else evict_one();
    } else if (all_.make_room(slab_bytes(), *this)) {
      // Where Memory gives less than may be kept, cached pages have to do.
      if (Status status = grow(); !status && !evict_one() && !all_.reclaim(*this)) return status;
    } else if (all_.writing > 0) {
      all_.written.wait(lock);  // what is written becomes free
    } else {
      return no_room(out.size());
    }
  }
  for (PageId& id : out) {
    id = free_.first;
    unlink(free_, id);
    pages_[id].references = 1;
    ++slabs_[id / slab_pages_].busy;
  }
  used_ += out.size();
  return {};
}

void Pool::share(std::span<const PageId> ids) noexcept {
  for (const PageId id : ids) {
    if (id == kNoPage) continue;
    if (pages_[id].references++ == 0) {
      unlink(list_of(*pages_[id].node), id);
      ++used_;
    }
  }
}

void Pool::release(std::span<const PageId> ids) noexcept {
  // The last page first: of a chain of cached pages, its end is to be evicted before its beginning.
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    if (*id == kNoPage || --pages_[*id].references > 0) continue;
    --used_;
    if (const PrefixNode* node = pages_[*id].node; node != nullptr) push_back(list_of(*node), *id);
    else make_free(*id);
  }
  all_.settle();
  write_behind(all_.options.keep / 4 * 3);
}

bool Pool::make_private(PageId id) noexcept {
  if (pages_[id].references != 1) return false;
  if (pages_[id].node != nullptr) forget(*pages_[id].node);
  return true;
}

Pool::Found Pool::find(std::string_view identity, PageId parent, std::span<const Token> tokens,
                       std::unique_lock<std::mutex>& lock) noexcept {
  const PrefixNode* above = parent == kNoPage ? index_.root(identity) : pages_[parent].node;
  PrefixNode* node = above != nullptr ? index_.child(*above, tokens) : nullptr;
  if (node == nullptr) return {};
  if (node->page != kNoPage) {
    if (pages_[node->page].reading) return {};
    share({&node->page, 1});
    return {.id = node->page};
  }
  PageId id = kNoPage;
  if (!guard([&] { return acquire({&id, 1}, lock); })) return {};
  // Much may have happened meanwhile, as others had the lock and pages were evicted.
  above = parent == kNoPage ? index_.root(identity) : pages_[parent].node;
  node = above != nullptr ? index_.child(*above, tokens) : nullptr;
  if (node == nullptr || node->page != kNoPage) {
    release({&id, 1});
    return {};
  }
  node->page = id;
  pages_[id].node = node;
  pages_[id].reading = true;
  return {.id = id, .read_from = node->stored};
}

PageId Pool::publish(std::string_view identity, PageId parent, std::span<const Token> tokens, PageId id) noexcept {
  if (pages_[id].node != nullptr) return id;
  PrefixNode* above = nullptr;
  try {
    above = parent != kNoPage ? pages_[parent].node : index_.root(identity);
    if (above == nullptr && parent != kNoPage) return kNoPage;  // what it follows has been evicted
    if (above == nullptr) above = &index_.add_root(identity);
    if (PrefixNode* same = index_.child(*above, tokens); same != nullptr) {
      if (same->page == kNoPage) {  // it was only in the file
        same->page = id;
        pages_[id].node = same;
        return id;
      }
      if (pages_[same->page].reading) return kNoPage;
      const PageId other = same->page;
      share({&other, 1});
      release({&id, 1});
      return other;
    }
    pages_[id].node = &index_.add_child(*above, tokens, id);
    return id;
  } catch (const std::bad_alloc&) {  // not to be found by others is no error
    if (above != nullptr && above->parent == nullptr) index_.drop_childless(*above);
    return kNoPage;
  }
}

bool Pool::evict_one() noexcept {
  if (clean_.size > 0) {
    const PageId id = clean_.first;
    pages_[id].node->page = kNoPage;
    pages_[id].node = nullptr;
    unlink(clean_, id);
    make_free(id);
    return true;
  }
  if (cached_.size == 0) return false;
  const std::size_t before = cached();
  forget(*pages_[cached_.first].node);
  all_.figures.evictions += before - cached();
  return true;
}

void Pool::release_slabs(std::uint64_t target) noexcept {
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

std::string Pool::check() const {
  std::vector<std::uint8_t> seen(pages_.size(), 0);
  const auto walk = [&](const List& list, std::uint8_t mark) -> std::string {
    std::size_t n = 0;
    for (PageId id = list.first; id != kNoPage; id = pages_[id].next, ++n) {
      if (seen[id] != 0) return fmt::format("page {} is in two lists", id);
      if (pages_[id].references != 0) return fmt::format("page {} is in a list and used", id);
      if ((pages_[id].node != nullptr) != (mark == 2)) return fmt::format("page {} is in the wrong list", id);
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
    if (pages_[id].node != nullptr && pages_[id].node->page != id) return fmt::format("page {} has another's node", id);
  }
  if (used != used_) return fmt::format("{} pages are used, not {}", used, used_);
  if (used + free_.size + cached() != in_slabs) {
    return fmt::format("{} used + {} free + {} cached pages are not {}", used, free_.size, cached(), in_slabs);
  }
  return "";
}

}  // namespace tessera::detail
