#include "kv/pages/paged_storage.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace tessera::detail {

PagedStorage::~PagedStorage() {
  suspended_.reset();
  drop_slots();
  const std::lock_guard lock(pools_->mutex);
  for (std::size_t group = 0; group < groups(); ++group) pool(group).release(ids_[group]);
}

std::uint64_t PagedStorage::bytes() const noexcept {
  if (suspended_ != nullptr) return suspended_->bytes_in_memory();
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < groups(); ++group) {
    const auto held = std::ranges::count_if(ids_[group], [](PageId id) { return id != kNoPage; });
    bytes += static_cast<std::uint64_t>(held) * pool(group).page_bytes();
  }
  return bytes + slot_bytes();
}

// Returns whether the sequence may write to pages [first, last) as they are: the tables have them all, and none of them is shared or in the
// index. True in most decode steps.
bool PagedStorage::all_private(std::uint64_t first, std::uint64_t last) const noexcept {
  const std::lock_guard lock(pools_->mutex);
  for (std::size_t group = 0; group < groups(); ++group) {
    const PageTable& ids = ids_[group];
    if (last > ids.size()) return false;
    if (group == state_group_) continue;
    for (std::uint64_t i = first; i < last; ++i) {
      if (ids[i] != kNoPage && !pool(group).is_private(ids[i])) return false;
    }
  }
  return true;
}

void PagedStorage::reserve_tables(std::uint64_t n) {
  for (PageTable& ids : ids_) {
    if (n > ids.capacity()) ids.reserve(std::max<std::uint64_t>(n, 2 * ids.capacity()));
  }
  reserve_pages(n);
}

void PagedStorage::set(const Place& at, PageId id) noexcept {
  ids_[at.group][at.page] = id;
  pages_[at.group][at.page] = pool(at.group).address(id);
}

std::vector<PoolPage> PagedStorage::pages_for(const std::vector<Place>& shared, std::uint64_t last) const {
  std::vector<PoolPage> wanted;
  std::size_t n = shared.size();
  for (const PageTable& ids : ids_) n += last > ids.size() ? last - ids.size() : 0;
  wanted.reserve(n);
  for (const Place& at : shared) wanted.push_back({.pool = &pool(at.group)});
  for (std::size_t group = 0; group < groups(); ++group) {
    if (group == state_group_) continue;
    for (std::uint64_t i = ids_[group].size(); i < last; ++i) wanted.push_back({.pool = &pool(group)});
  }
  return wanted;
}

void PagedStorage::append(std::span<const PoolPage> fresh, std::uint64_t last) noexcept {
  std::size_t next = 0;
  for (std::size_t group = 0; group < groups(); ++group) {
    while (ids_[group].size() < last) {
      const PageId id = group == state_group_ ? kNoPage : fresh[next++].id;
      ids_[group].push_back(id);
      pages_[group].push_back(id != kNoPage ? pool(group).address(id) : nullptr);
    }
  }
}

Status PagedStorage::make_writable(std::uint64_t first, std::uint64_t last) {
  if (all_private(first, last)) return {};
  reserve_tables(last);
  std::vector<Place> shared;  // pages to be copied
  std::size_t present = 0;
  for (const PageTable& ids : ids_) present += std::min<std::uint64_t>(last, ids.size());
  shared.reserve(present - std::min<std::uint64_t>(present, first));
  std::vector<PoolPage> fresh;
  std::vector<Transfer> copies;
  {
    std::unique_lock lock(pools_->mutex);
    for (std::size_t group = 0; group < groups(); ++group) {
      if (group == state_group_) continue;
      for (std::uint64_t i = first; i < std::min<std::uint64_t>(last, ids_[group].size()); ++i) {
        const PageId id = ids_[group][i];
        if (id != kNoPage && !pool(group).is_private(id)) shared.push_back({group, i});
      }
    }
    // Pages that this sequence shares are replaced by copies, which `fresh` will have. If other sequences share a page, the copy is
    // necessary. If only the index shares the page, the copy is made so that the index keeps the page. Exception: if there is no room for
    // such a copy, the page is removed from the index, and the sequence writes to the page itself. `others_alone`: all copies are
    // necessary.
    const bool others_alone = std::ranges::all_of(shared, [&](const Place& at) { return pool(at.group).references(id_at(at)) > 1; });
    fresh = pages_for(shared, last);
    copies.reserve(shared.size());
    bool take = !others_alone && !pools_->within_keep(fresh);
    if (!take) {
      const Status status = pools_->acquire(fresh, lock);
      if (!status && others_alone) return status;
      take = !status;
    }
    if (take) TESSERA_TRY_STATUS(take_from_index(shared, fresh, lock));
    for (std::size_t i = 0; i < shared.size(); ++i) {
      const Place& at = shared[i];
      copies.push_back({.to = fresh[i].pool->address(fresh[i].id),
                        .from = pages_[at.group][at.page],
                        .bytes = fresh[i].pool->page_bytes()});
    }
    if (shared.empty()) {
      append(fresh, last);
      return {};
    }
  }
  // Copies without the lock. The old pages stay valid meanwhile, because this sequence gives them back only afterwards.
  const bool done = memory_.copy(copies);
  const std::lock_guard lock(pools_->mutex);
  if (!done) {
    pools_->release(fresh);
    return device_error("copying pages of a KV cache");
  }
  if (pools_->keeps_copies) {
    const std::size_t before = pools_->copies.size();
    Status noted = guard([&]() -> Status {
      for (std::size_t i = 0; i < shared.size(); ++i) {
        pools_->copies.push_back({.page_bytes = fresh[i].pool->page_bytes(), .from = id_at(shared[i]), .to = fresh[i].id});
      }
      return {};
    });
    if (!noted) {
      pools_->copies.resize(before);
      pools_->release(fresh);
      return noted;
    }
  }
  pools_->figures.copies += shared.size();
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const PageId old = id_at(shared[i]);
    set(shared[i], fresh[i].id);
    pool(shared[i].group).release({&old, 1});
  }
  append(std::span(fresh).subspan(shared.size()), last);
  return {};
}

Status PagedStorage::take_from_index(std::vector<Place>& shared, std::vector<PoolPage>& fresh,
                                     std::unique_lock<std::mutex>& lock) {
  const std::size_t n_shared = shared.size();
  const auto with_others = [&](const Place& at) { return pool(at.group).references(id_at(at)) > 1; };
  std::vector<PoolPage> have;
  have.reserve(fresh.size());
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (i >= n_shared || with_others(shared[i])) have.push_back({.pool = fresh[i].pool});
  }
  std::vector<PoolPage> missing;
  missing.reserve(n_shared);
  TESSERA_TRY_STATUS(pools_->acquire(have, lock));
  std::erase_if(shared, [&](const Place& at) { return pool(at.group).make_private(id_at(at)); });
  // While acquire() waited, other sequences may have taken pages of `shared` from the index, or released them. So only now it is known how many
  // copies are needed, which may differ from the number of pages that were taken.
  fresh.erase(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(n_shared - shared.size()));
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (i < shared.size()) fresh[i].pool = &pool(shared[i].group);
    const auto spare = std::ranges::find_if(
        have, [&](const PoolPage& page) { return page.pool == fresh[i].pool && page.id != kNoPage; });
    fresh[i].id = spare != have.end() ? std::exchange(spare->id, kNoPage) : kNoPage;
    if (fresh[i].id == kNoPage) missing.push_back({.pool = fresh[i].pool});
  }
  pools_->release(have);
  if (missing.empty()) return {};
  if (Status status = guard([&] { return pools_->acquire(missing, lock); }); !status) {
    pools_->release(fresh);
    return status;
  }
  std::size_t next = 0;
  for (PoolPage& page : fresh) {
    if (page.id == kNoPage) page.id = missing[next++].id;
  }
  return {};
}

void PagedStorage::shrink(std::uint64_t n) noexcept {
  if (suspended_ != nullptr) {
    suspended_->shrink(n);
    return;
  }
  if (n == 0) drop_slots();
  if (std::ranges::all_of(ids_, [n](const PageTable& ids) { return n >= ids.size(); })) return;
  const std::lock_guard lock(pools_->mutex);
  for (std::size_t group = 0; group < groups(); ++group) {
    PageTable& ids = ids_[group];
    if (n >= ids.size()) continue;
    pool(group).release(std::span(ids).subspan(n));
    ids.resize(n);
    pages_[group].resize(n);
  }
}

void PagedStorage::drop_front(std::size_t group, std::uint64_t n) noexcept {
  PageTable& ids = ids_[group];
  n = std::min<std::uint64_t>(n, ids.size());
  std::uint64_t first = n;
  while (first > 0 && ids[first - 1] != kNoPage) --first;
  if (first == n) return;
  const std::lock_guard lock(pools_->mutex);
  pool(group).release(std::span(ids).subspan(first, n - first));
  std::fill(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.begin() + static_cast<std::ptrdiff_t>(n), kNoPage);
  auto& pages = pages_[group];
  std::fill(pages.begin() + static_cast<std::ptrdiff_t>(first), pages.begin() + static_cast<std::ptrdiff_t>(n), nullptr);
}

Status PagedStorage::take_again(std::span<const std::uint64_t> first, std::uint64_t last) {
  std::vector<Place> places;
  std::vector<PoolPage> fresh;
  for (std::size_t group = 0; group < groups(); ++group) {
    for (std::uint64_t page = first[group]; page < last; ++page) {
      if (ids_[group][page] != kNoPage) continue;
      places.push_back({group, page});
      fresh.push_back({.pool = &pool(group)});
    }
  }
  if (places.empty()) return {};
  std::unique_lock lock(pools_->mutex);
  TESSERA_TRY_STATUS(pools_->acquire(fresh, lock));
  for (std::size_t i = 0; i < places.size(); ++i) set(places[i], fresh[i].id);
  return {};
}

void PagedStorage::skip_front(std::span<const std::uint64_t> front) {
  for (std::size_t group = 0; group < groups(); ++group) {
    ids_[group].reserve(front[group]);
  }
  reserve_pages(std::ranges::max(front));
  for (std::size_t group = 0; group < groups(); ++group) {
    ids_[group].assign(front[group], kNoPage);
    pages_[group].assign(front[group], nullptr);
  }
}

Result<std::unique_ptr<KvStorage>> PagedStorage::fork() const {
  auto copy = std::make_unique<PagedStorage>(pools_, pooled_);
  for (std::size_t group = 0; group < groups(); ++group) copy->ids_[group].reserve(ids_[group].size());
  copy->pages_ = pages_;
  copy->update_tables();
  const std::lock_guard lock(pools_->mutex);
  for (std::size_t group = 0; group < groups(); ++group) pool(group).share(ids_[group]);
  copy->ids_ = ids_;
  copy->tail_ = tail_;
  copy->published_ = published_;
  return std::unique_ptr<KvStorage>(std::move(copy));
}

Result<std::unique_ptr<KvStorage>> PagedStorage::create_empty(std::uint64_t) const {
  return std::unique_ptr<KvStorage>(std::make_unique<PagedStorage>(pools_, pooled_));
}

Status PagedStorage::suspend() {
  if (pools_->file == nullptr) {
    return make_error(ErrorCode::invalid_state, "there is no file to suspend to: give the engine one (kv_file)");
  }
  if (suspended_ != nullptr) {
    suspended_->drop_incoming();
    return {};
  }
  drop_slots();
  auto suspended = std::make_unique<SuspendedPages>(*pools_, pooled_);
  TESSERA_TRY_STATUS(suspended->put(ids_));
  suspended_ = std::move(suspended);
  for (PageTable& ids : ids_) ids.clear();
  for (auto& pages : pages_) pages.clear();
  return {};
}

Status PagedStorage::resume() {
  if (suspended_ == nullptr) return {};
  std::vector<std::vector<std::byte*>> pages(groups());
  for (auto& list : pages) list.reserve(suspended_->size());  // allocates now, because nothing may fail after take()
  TESSERA_TRY(std::vector<PageTable> tables, suspended_->take());
  {
    const std::lock_guard lock(pools_->mutex);
    for (std::size_t group = 0; group < groups(); ++group) {
      for (const PageId id : tables[group]) pages[group].push_back(id != kNoPage ? pool(group).address(id) : nullptr);
    }
  }
  ids_ = std::move(tables);
  pages_ = std::move(pages);
  update_tables();
  suspended_.reset();
  limit_published(0);
  return {};
}

Result<std::unique_ptr<KvStorage>> make_paged_storage(KvLayout layout, const KvPools& pools) {
  const std::shared_ptr<KvPools::State>& state = pools.state();
  const std::lock_guard lock(state->mutex);
  const PooledLayout& pooled = state->pooled(layout);
  return std::unique_ptr<KvStorage>(std::make_unique<PagedStorage>(state, pooled));
}

}  // namespace tessera::detail
