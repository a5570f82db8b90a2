// PagePool: copies of pages in the file. Copies of cached pages are written in the background, so that an eviction need not wait for a
// disk. A page that was evicted with a copy can still be found and read back.
#include <utility>

#include "core/guard.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {
namespace {

// Limit for the number of pages that are being written at the same time, because a page cannot be evicted while it is written.
constexpr std::size_t kMostWriting = 8;

}  // namespace

void PagePool::add_copy(IndexedPage& indexed, std::shared_ptr<PageFile::Extent> extent) noexcept {
  indexed.stored = std::move(extent);
  indexed.previous_stored = last_stored_;
  indexed.next_stored = nullptr;
  (last_stored_ != nullptr ? last_stored_->next_stored : first_stored_) = &indexed;
  last_stored_ = &indexed;
}

void PagePool::remove_copy(IndexedPage& indexed) noexcept {
  IndexedPage* const previous = indexed.previous_stored;
  IndexedPage* const next = indexed.next_stored;
  (previous != nullptr ? previous->next_stored : first_stored_) = next;
  (next != nullptr ? next->previous_stored : last_stored_) = previous;
  indexed.previous_stored = indexed.next_stored = nullptr;
  indexed.stored.reset();
}

bool PagePool::drop_oldest_copy(Copies of) noexcept {
  IndexedPage* oldest = first_stored_;
  const auto is_clean = [&] { return oldest->id != kNoPage && pages_[oldest->id].references == 0; };
  while (oldest != nullptr && of == Copies::not_clean && is_clean()) oldest = oldest->next_stored;
  if (oldest == nullptr) return false;
  if (oldest->id == kNoPage) {
    const std::size_t before = all_.cached_pages();
    all_.lose(*oldest);
    all_.figures.evictions += 1 + before - all_.cached_pages();
    return true;
  }
  const bool listed = is_clean();
  if (listed) unlink(clean_, oldest->id);
  const PageId id = oldest->id;
  remove_copy(*oldest);
  if (listed) push_back(cached_, id);
  return true;
}

std::shared_ptr<PageFile::Extent> PagePool::allocate_stored(Copies of) {
  if (all_.file == nullptr) return nullptr;
  for (;;) {
    if (auto extent = all_.file->allocate(page_bytes_); extent != nullptr) return extent;
    if (!drop_oldest_copy(of)) return nullptr;
  }
}

bool PagePool::write_behind(std::uint64_t level) noexcept {
  while (all_.file != nullptr && all_.figures.file_errors == 0 && cached_.size > 0 && writing_ < kMostWriting && all_.occupied() > level) {
    const PageId id = cached_.first;
    share({&id, 1});  // a reference keeps the page from being evicted or reused while it is written
    ++writing_;
    ++all_.writing;
    try {
      auto extent = allocate_stored(Copies::not_clean);
      if (extent != nullptr) {
        all_.file->submit({.direction = PageFile::Direction::write,
                           .data = pages_[id].address,
                           .bytes = page_bytes_,
                           .extent = std::move(extent),
                           .done = [this, id](int error, std::shared_ptr<PageFile::Extent> written) {
                             const std::lock_guard lock(all_.mutex);
                             finish_write(id, std::move(written), error);
                           }});
        continue;
      }
    } catch (...) {  // if there is no memory for the job, there is no copy
    }
    finish_write(id, nullptr, -1);
    break;
  }
  return writing_ > 0;
}

void PagePool::finish_write(PageId id, std::shared_ptr<PageFile::Extent> extent, int error) noexcept {
  --writing_;
  --all_.writing;
  all_.written.notify_all();
  if (error > 0) ++all_.figures.file_errors;
  if (IndexedPage* indexed = pages_[id].indexed; error == 0 && indexed != nullptr && indexed->stored == nullptr) {
    add_copy(*indexed, std::move(extent));
    ++all_.figures.pages_written;
  }
  if (error == 0) release({&id, 1});
  // Like release(), but does not call write_behind(), which would try to write the page again at once.
  else if (--pages_[id].references == 0) put_down(id);
}

}  // namespace tessera::detail
