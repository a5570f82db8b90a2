#include "kv/suspended_pages.hpp"

#include <algorithm>
#include <utility>

#include "support/error.hpp"

namespace tessera::detail {

SuspendedPages::~SuspendedPages() { shrink(0); }

Status SuspendedPages::put(const std::vector<PageId>& ids) {
  std::vector<std::shared_ptr<StoredPage>> pages(ids.size());
  std::unique_lock lock(pools_.mutex);
  const auto n = static_cast<std::uint64_t>(std::ranges::count_if(ids, [](PageId id) { return id != kNoPage; }));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kNoPage) continue;
    pages[i] = std::make_shared<StoredPage>();
    while ((pages[i]->extent = pool_.allocate_stored(Pool::Copies::any)) == nullptr && pools_.writing > 0) {
      pools_.written.wait(lock);  // what nobody wants any more gives its room back
    }
    if (pages[i]->extent == nullptr) {
      return make_error(ErrorCode::cache_full,
                        "the file for KV pages has no room: {} bytes are needed, {} of {} are taken. Make it larger, or end "
                        "sessions that are suspended",
                        n * pool_.page_bytes(), pools_.file->used(), pools_.file->size());
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (pages[i] != nullptr) pages[i]->id = ids[i];
  }
  pages_ = std::move(pages);
  // A page that cannot be handed over stays in memory: that is no error.
  (void)guard([&]() -> Status {
    for (const auto& page : pages_) {
      if (page != nullptr) submit(page);
    }
    return {};
  });
  return {};
}

// A page has been written, or could not be.
void SuspendedPages::arrived(KvPools::State& pools, Pool& pool, StoredPage& page, int error) noexcept {
  page.writing = false;
  --pools.writing;
  pools.written.notify_all();
  ++(error == 0 ? pools.figures.pages_written : pools.figures.file_errors);
  if (error != 0 && !page.abandoned) return;  // it stays in memory
  const PageId id = std::exchange(page.id, kNoPage);
  pool.release({&id, 1});
}

void SuspendedPages::submit(const std::shared_ptr<StoredPage>& page) {
  page->writing = true;
  ++pools_.writing;
  try {
    pools_.file->submit({.direction = PageFile::Direction::write,
                         .data = pool_.address(page->id),
                         .bytes = pool_.page_bytes(),
                         .extent = page->extent,
                         .done = [pools = &pools_, pool = &pool_, held = page](
                                     int error, std::shared_ptr<PageFile::Extent> extent) mutable {
                           const std::lock_guard lock(pools->mutex);
                           // Let go of before the lock is, so that an abandoned page's room is there for who waits.
                           const std::shared_ptr<StoredPage> written = std::move(held);
                           extent.reset();
                           arrived(*pools, *pool, *written, error);
                         }});
  } catch (...) {
    page->writing = false;
    --pools_.writing;
    throw;
  }
}

Status SuspendedPages::prefetch() {
  if (incoming_ != nullptr) return {};
  auto incoming = std::make_unique<Incoming>();
  incoming->ids.assign(pages_.size(), kNoPage);
  incoming->reads = std::make_unique<PageReads>(pools_.file.get());
  std::vector<PageId> fresh(pages_.size(), kNoPage);
  std::vector<std::size_t> to_read;  // indices
  to_read.reserve(pages_.size());
  std::unique_lock lock(pools_.mutex);
  // First what is still in memory, so that it stays there.
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    if (pages_[i] == nullptr) continue;
    if (pages_[i]->id == kNoPage) {
      to_read.push_back(i);
    } else {
      incoming->ids[i] = pages_[i]->id;
      pool_.share({&incoming->ids[i], 1});
    }
  }
  fresh.resize(to_read.size());
  Status status = guard([&]() -> Status {
    TESSERA_TRY_STATUS(pool_.acquire(fresh, lock));
    for (std::size_t i = 0; i < fresh.size(); ++i) incoming->ids[to_read[i]] = fresh[i];
    for (const std::size_t i : to_read) {
      incoming->reads->add(pool_.address(incoming->ids[i]), pool_.page_bytes(), pages_[i]->extent);
    }
    return {};
  });
  if (!status) {
    lock.unlock();  // the file's thread may need it before it comes to the reads
    incoming->reads->wait();
    lock.lock();
    pool_.release(incoming->ids);
    return status;
  }
  incoming_ = std::move(incoming);
  return {};
}

Result<std::vector<PageId>> SuspendedPages::take(std::vector<std::byte*>& addresses) {
  addresses.reserve(pages_.size());  // before anything is taken
  TESSERA_TRY_STATUS(prefetch());
  incoming_->reads->wait();
  const auto& errors = incoming_->reads->errors();
  const auto bad = std::ranges::find_if(errors, [](int error) { return error != 0; });
  if (bad != errors.end()) {
    const int error = *bad;
    drop_incoming();
    return system_error_at("the file for KV pages", "read a page back", error);
  }
  const std::lock_guard lock(pools_.mutex);
  for (const PageId id : incoming_->ids) addresses.push_back(id != kNoPage ? pool_.address(id) : nullptr);
  pools_.figures.pages_read += errors.size();
  std::vector<PageId> ids = std::move(incoming_->ids);
  incoming_.reset();
  drop_from(0);
  return ids;
}

void SuspendedPages::drop_incoming() noexcept {
  if (incoming_ == nullptr) return;
  incoming_->reads->wait();
  const std::lock_guard lock(pools_.mutex);
  pool_.release(incoming_->ids);
  incoming_.reset();
}

void SuspendedPages::drop_from(std::size_t n) noexcept {
  for (std::size_t i = n; i < pages_.size(); ++i) {
    if (pages_[i] == nullptr) continue;
    if (pages_[i]->writing) pages_[i]->abandoned = true;
    else pool_.release({&pages_[i]->id, 1});
  }
  pages_.resize(std::min(n, pages_.size()));
}

void SuspendedPages::shrink(std::size_t n) noexcept {
  if (n >= pages_.size()) return;
  drop_incoming();
  const std::lock_guard lock(pools_.mutex);
  drop_from(n);
}

std::uint64_t SuspendedPages::bytes_in_memory() const noexcept {
  const std::lock_guard lock(pools_.mutex);
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    const bool written = pages_[i] == nullptr || pages_[i]->id == kNoPage;
    n += !written || (incoming_ != nullptr && incoming_->ids[i] != kNoPage) ? 1 : 0;
  }
  return n * pool_.page_bytes();
}

}  // namespace tessera::detail
