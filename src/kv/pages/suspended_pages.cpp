#include "kv/pages/suspended_pages.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace tessera::detail {

SuspendedPages::~SuspendedPages() { shrink(0); }

Status SuspendedPages::put(const std::vector<PageTable>& tables) {
  std::vector<std::vector<std::shared_ptr<StoredPage>>> pages(tables.size());
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < tables.size(); ++group) {
    pages[group].resize(tables[group].size());
    for (const PageId id : tables[group]) bytes += id != kNoPage ? layout_.pools[group]->page_bytes() : 0;
  }
  std::unique_lock lock(pools_.mutex);
  for (std::size_t group = 0; group < tables.size(); ++group) {
    for (std::size_t i = 0; i < tables[group].size(); ++i) {
      if (tables[group][i] == kNoPage) continue;
      PagePool& pool = *layout_.pools[group];
      std::shared_ptr<StoredPage>& page = pages[group][i];
      page = std::make_shared<StoredPage>(StoredPage{.page = {.pool = &pool}, .extent = {}});
      while ((page->extent = pool.allocate_stored(PagePool::Copies::any)) == nullptr && pools_.writing > 0) {
        pools_.written.wait(lock);  // if a page was abandoned, its range of the file becomes free when the job that writes it ends
      }
      if (page->extent == nullptr) {
        return make_error(ErrorCode::cache_full,
                          "the file for KV pages has no room: {} bytes are needed, {} of {} are taken. Make it larger, or "
                          "end sessions that are suspended",
                          bytes, pools_.file->used(), pools_.file->size());
      }
    }
  }
  for (std::size_t group = 0; group < tables.size(); ++group) {
    for (std::size_t i = 0; i < tables[group].size(); ++i) {
      if (pages[group][i] != nullptr) pages[group][i]->page.id = tables[group][i];
    }
  }
  pages_ = std::move(pages);
  // If a page's job cannot be submitted, the page simply stays in memory, which is no error.
  (void)guard([&]() -> Status {
    for (const auto& group : pages_) {
      for (const auto& page : group) {
        if (page != nullptr) submit(page);
      }
    }
    return {};
  });
  return {};
}

// Called when a page was written or, if error != 0, could not be written.
void SuspendedPages::arrived(KvPools::State& pools, StoredPage& page, int error) noexcept {
  page.writing = false;
  --pools.writing;
  pools.written.notify_all();
  ++(error == 0 ? pools.figures.pages_written : pools.figures.file_errors);
  if (error != 0 && !page.abandoned) return;  // the page stays in memory
  const PageId id = std::exchange(page.page.id, kNoPage);
  page.page.pool->release({&id, 1});
}

void SuspendedPages::submit(const std::shared_ptr<StoredPage>& page) {
  const PagePool& pool = *page->page.pool;
  page->writing = true;
  ++pools_.writing;
  try {
    pools_.file->submit({.direction = PageFile::Direction::write,
                         .data = pool.address(page->page.id),
                         .bytes = pool.page_bytes(),
                         .extent = page->extent,
                         .done = [pools = &pools_, held = page](int error, std::shared_ptr<PageFile::Extent> extent) mutable {
                           const std::lock_guard lock(pools->mutex);
                           // `written` is declared after the lock, so it is destroyed while the lock is still held. If the page is
                           // abandoned, this frees its extent too. So the next thread that gets the lock finds the extent's range of the
                           // file free.
                           const std::shared_ptr<StoredPage> written = std::move(held);
                           extent.reset();
                           arrived(*pools, *written, error);
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
  incoming->tables.resize(pages_.size());
  std::size_t n = 0;
  for (std::size_t group = 0; group < pages_.size(); ++group) {
    incoming->tables[group].assign(pages_[group].size(), kNoPage);
    n += pages_[group].size();
  }
  incoming->reads = std::make_unique<PageReads>(pools_.file.get());
  struct Read {
    PageId* to;
    const StoredPage* from;
  };
  std::vector<Read> to_read;
  std::vector<PoolPage> fresh;
  to_read.reserve(n);
  fresh.reserve(n);
  std::unique_lock lock(pools_.mutex);
  // First takes a reference to each page that is still in memory, so that the page is not evicted and need not be read.
  for (std::size_t group = 0; group < pages_.size(); ++group) {
    for (std::size_t i = 0; i < pages_[group].size(); ++i) {
      const StoredPage* page = pages_[group][i].get();
      if (page == nullptr) continue;
      PageId& to = incoming->tables[group][i];
      if (page->page.id != kNoPage) {
        to = page->page.id;
        page->page.pool->share(to);
      } else {
        to_read.push_back({.to = &to, .from = page});
        fresh.push_back({.pool = page->page.pool});
      }
    }
  }
  Status status = guard([&]() -> Status {
    TESSERA_TRY_STATUS(pools_.acquire(fresh, lock));
    for (std::size_t i = 0; i < fresh.size(); ++i) *to_read[i].to = fresh[i].id;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      incoming->reads->add(fresh[i].pool->address(fresh[i].id), fresh[i].pool->page_bytes(), to_read[i].from->extent);
    }
    return {};
  });
  if (!status) {
    lock.unlock();  // the file's thread may need the lock for jobs that come before these reads
    incoming->reads->wait();
    lock.lock();
    release(incoming->tables);
    return status;
  }
  incoming_ = std::move(incoming);
  return {};
}

Result<std::vector<PageTable>> SuspendedPages::take() {
  TESSERA_TRY_STATUS(prefetch());
  incoming_->reads->wait();
  const auto& errors = incoming_->reads->errors();
  const auto bad = std::ranges::find_if(errors, [](int error) { return error != 0; });
  if (bad != errors.end()) {
    const int error = *bad;
    drop_incoming();
    return os::system_error_at("the file for KV pages", "read a page back", error);
  }
  const std::lock_guard lock(pools_.mutex);
  pools_.figures.pages_read += errors.size();
  std::vector<PageTable> tables = std::move(incoming_->tables);
  incoming_.reset();
  drop_from(0);
  return tables;
}

void SuspendedPages::release(const std::vector<PageTable>& tables) noexcept {
  for (std::size_t group = 0; group < tables.size(); ++group) layout_.pools[group]->release(tables[group]);
}

void SuspendedPages::drop_incoming() noexcept {
  if (incoming_ == nullptr) return;
  incoming_->reads->wait();
  const std::lock_guard lock(pools_.mutex);
  release(incoming_->tables);
  incoming_.reset();
}

void SuspendedPages::drop_from(std::size_t n) noexcept {
  for (auto& group : pages_) {
    for (std::size_t i = n; i < group.size(); ++i) {
      if (group[i] == nullptr) continue;
      if (group[i]->writing) group[i]->abandoned = true;
      else group[i]->page.pool->release({&group[i]->page.id, 1});
    }
    group.resize(std::min(n, group.size()));
  }
}

void SuspendedPages::shrink(std::size_t n) noexcept {
  if (std::ranges::all_of(pages_, [n](const auto& group) { return n >= group.size(); })) return;
  drop_incoming();
  const std::lock_guard lock(pools_.mutex);
  drop_from(n);
}

std::uint64_t SuspendedPages::bytes_in_memory() const noexcept {
  const std::lock_guard lock(pools_.mutex);
  std::uint64_t bytes = 0;
  for (std::size_t group = 0; group < pages_.size(); ++group) {
    for (std::size_t i = 0; i < pages_[group].size(); ++i) {
      const StoredPage* page = pages_[group][i].get();
      const bool written = page == nullptr || page->page.id == kNoPage;
      const bool coming = incoming_ != nullptr && incoming_->tables[group][i] != kNoPage;
      bytes += !written || coming ? layout_.pools[group]->page_bytes() : 0;
    }
  }
  return bytes;
}

}  // namespace tessera::detail
