// The handle KvPools, and what all its pools share: the budget, the prefix index, and requests for pages of several pools at once.
#include <tessera/extend/kv/kv_pools.hpp>

#include <algorithm>

#include "core/error.hpp"
#include "core/hasher.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera {

using detail::IndexedPage;
using detail::kNoPage;
using detail::KvStorage;
using detail::make_error;
using detail::PagePool;
using detail::PooledLayout;
using detail::PoolPage;
using detail::PrefixNode;

namespace {

Hash128 xxh3(const Hash128& parent, std::span<const std::byte> bytes) noexcept {
  detail::Hasher128 hasher;
  hasher.add(std::as_bytes(std::span(&parent, 1)));
  hasher.add(bytes);
  return hasher.digest();
}

KvPoolOptions resolved(KvPoolOptions options) {
  if (options.memory == nullptr) options.memory = &system_memory();
  if (options.hash == nullptr) options.hash = xxh3;
  if (options.budget != 0) options.keep = std::min(options.keep, options.budget);
  return options;
}

std::size_t count_of(std::span<const PoolPage> pages, const PagePool& pool) noexcept {
  return static_cast<std::size_t>(std::ranges::count(pages, &pool, [](const PoolPage& page) { return page.pool; }));
}

}  // namespace

std::uint64_t kv_slab_pages(std::uint64_t page_bytes, const KvPoolOptions& options) noexcept {
  const std::uint64_t page = std::max<std::uint64_t>(1, page_bytes);
  std::uint64_t most = options.max_slab_pages;
  if (options.budget != 0) most = std::min(most, options.budget / page / 16);
  return std::clamp<std::uint64_t>((kKvSlabBytes + page - 1) / page, 1, std::max<std::uint64_t>(1, most));
}

KvPools::KvPools(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

Result<KvPools> KvPools::create(const KvPoolOptions& options) noexcept {
  return detail::guard([&]() -> Result<KvPools> {
    auto state = std::make_shared<State>(resolved(options));
    if (!options.file.empty()) {
      TESSERA_TRY(state->file, detail::PageFile::create(options.file, options.file_bytes, *state->options.memory));
    }
    return KvPools(std::move(state));
  });
}

KvFigures KvPools::figures() const noexcept {
  if (state_ == nullptr) return {};
  const std::lock_guard lock(state_->mutex);
  KvFigures figures = state_->figures;
  for (const auto& pool : state_->pools) {
    figures.used_bytes += pool->used() * pool->page_bytes();
    figures.cached_bytes += pool->cached() * pool->page_bytes();
    figures.free_bytes += pool->free() * pool->page_bytes();
  }
  if (state_->file != nullptr) figures.file_bytes = state_->file->used();
  return figures;
}

void KvPools::trim() const noexcept {
  if (state_ == nullptr) return;
  std::unique_lock lock(state_->mutex);
  const auto drop_all = [&] {
    // The figure counts only evictions that made room for other pages, so its value is restored below.
    const std::uint64_t evictions = state_->figures.evictions;
    for (const auto& pool : state_->pools) {
      while (pool->drop_oldest_copy(PagePool::Copies::any) || pool->evict_one()) {
      }
    }
    for (const auto& pool : state_->pools) pool->release_slabs(0);
    state_->figures.evictions = evictions;
  };
  drop_all();  // afterwards no page is cached, so no further write to the file begins
  state_->written.wait(lock, [&] { return state_->writing == 0; });
  drop_all();
}

KvPools::State::State(const KvPoolOptions& with) : options(with), index(with.hash) {}

const PooledLayout& KvPools::State::pooled(const KvLayout& layout) {
  for (const auto& known : layouts) {
    if (known->layout == layout) return *known;
  }
  auto made = std::make_unique<PooledLayout>();
  made->layout = layout;
  made->number = static_cast<std::uint32_t>(layouts.size());
  for (const KvGroup& group : layout.groups) {
    auto pool = std::ranges::find(pools, group.page_bytes, [](const auto& p) { return p->page_bytes(); });
    if (pool == pools.end()) pool = pools.insert(pool, std::make_unique<PagePool>(*this, group.page_bytes));
    made->pools.push_back(pool->get());
  }
  layouts.push_back(std::move(made));
  return *layouts.back();
}

std::uint32_t KvPools::State::enter(KvStorage& cache) {
  const auto unused = std::ranges::find(contiguous, nullptr);
  if (unused == contiguous.end()) {
    contiguous.push_back(&cache);
    return static_cast<std::uint32_t>(contiguous.size() - 1);
  }
  *unused = &cache;
  return static_cast<std::uint32_t>(unused - contiguous.begin());
}

Status KvPools::State::acquire(std::span<PoolPage> out, std::unique_lock<std::mutex>& lock) {
  // If the budget can never be enough, fail here, before cached pages are evicted in vain.
  if (writing == 0 && options.budget != 0 && !obtainable(out, options.budget)) return no_room(out);
  const auto give_back = [&](std::size_t pools_done) {
    for (PoolPage& page : out) {
      for (std::size_t i = 0; i < pools_done; ++i) {
        if (page.pool == pools[i].get()) page.pool->put_back(std::exchange(page.id, kNoPage));
      }
    }
  };
  // Uses an index, because an iterator could become invalid: provide() may release the lock, and another thread may then add a pool.
  for (std::size_t i = 0; i < pools.size(); ++i) {
    PagePool& pool = *pools[i];
    const std::size_t n = count_of(out, pool);
    if (n == 0) continue;
    Status status = detail::guard([&] { return pool.provide(n, lock); });
    if (!status) {
      give_back(i);
      return status.error().code() == ErrorCode::cache_full ? Status(no_room(out)) : status;
    }
    // Take this pool's pages now, so that the request to the next pool cannot evict them.
    for (PoolPage& page : out) {
      if (page.pool == &pool) page.id = pool.take();
    }
  }
  return {};
}

void KvPools::State::release(std::span<const PoolPage> pages) noexcept {
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) page->pool->release({&page->id, 1});
}

bool KvPools::State::obtainable(std::span<const PoolPage> wanted, std::uint64_t limit) const noexcept {
  std::uint64_t elsewhere = limit - std::min(limit, figures.held_bytes), missing = 0;
  for (const auto& pool : pools) {
    const std::size_t have = pool->free() + pool->cached(), n = count_of(wanted, *pool);
    if (n > have) missing += (n - have) * pool->page_bytes();
    else elsewhere += (have - n) * pool->page_bytes();
  }
  return missing <= elsewhere;
}

Error KvPools::State::no_room(std::span<const PoolPage> wanted) const noexcept {
  std::uint64_t needed = 0;
  for (const auto& pool : pools) needed += count_of(wanted, *pool) * pool->page_bytes();
  const std::uint64_t free = room();
  if (needed <= free) {
    return make_error(ErrorCode::cache_full,
                      "{} bytes of KV pages are needed; {} are free, of a budget of {}, but not enough of them in whole blocks of such "
                      "pages: end or truncate a session, or give the engine a larger KV budget",
                      needed, free, options.budget);
  }
  return make_error(ErrorCode::cache_full,
                    "{} bytes of KV pages are needed and {} are free, of a budget of {}: end or truncate a session, or "
                    "give the engine a larger KV budget",
                    needed, free, options.budget);
}

std::uint64_t KvPools::State::room() const noexcept {
  if (options.budget == 0) return ~std::uint64_t{0};
  std::uint64_t used = 0;
  for (const auto& pool : pools) used += pool->used() * pool->page_bytes();
  return options.budget - std::min(options.budget, used);
}

std::size_t KvPools::State::pages() const noexcept {
  std::size_t n = 0;
  for (const auto& pool : pools) n += pool->used() + pool->cached();
  return n;
}

std::size_t KvPools::State::cached_pages() const noexcept {
  std::size_t n = 0;
  for (const auto& pool : pools) n += pool->cached();
  return n;
}

std::uint64_t KvPools::State::occupied() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& pool : pools) bytes += (pool->used() + pool->cached()) * pool->page_bytes();
  return bytes;
}

void KvPools::State::settle() noexcept {
  for (const auto& pool : pools) {
    while (occupied() > options.keep && pool->cached() > 0) {
      if (pool->clean() == 0 && pool->write_behind(options.keep)) break;  // the pages that are being written can be evicted later
      pool->evict_one();
    }
  }
  for (const auto& pool : pools) pool->release_slabs(options.keep);
}

bool KvPools::State::make_room(std::uint64_t bytes, const PagePool& asking) noexcept {
  const auto fits = [&](std::uint64_t limit) { return figures.held_bytes <= limit && bytes <= limit - figures.held_bytes; };
  const std::uint64_t target = options.keep > bytes ? options.keep - bytes : 0;
  for (const auto& pool : pools) {
    if (pool.get() == &asking) continue;
    do {
      if (fits(options.keep)) return true;
      pool->release_slabs(target);
    } while (pool->evict_one());
    pool->release_slabs(target);
  }
  return options.budget == 0 || fits(options.budget);
}

bool KvPools::State::reclaim(const PagePool& asking) noexcept {
  const std::uint64_t before = figures.held_bytes;
  for (const auto& pool : pools) {
    if (pool.get() == &asking) continue;
    while (pool->evict_one()) {
    }
    pool->release_slabs(0);
  }
  return figures.held_bytes < before;
}

void KvPools::State::lose(IndexedPage& page) noexcept {
  PrefixNode& node = *page.node;
  const auto group = static_cast<std::size_t>(&page - node.pages.data());
  const auto detach = [](IndexedPage& one) { one.pool->detach(one); };
  const KvGroup& of = node.layout->layout.groups[group];
  if (of.window != 0 || of.is_recurrent()) {
    detach(page);
    index.count_empty(node);
    if (!node.is_empty()) return;
    if (node.first_child == nullptr) return index.prune(node);
    if (index.empty() <= pages()) return;
  }
  index.remove(node, detach);
}

}  // namespace tessera
