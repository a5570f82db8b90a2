// The pool's side of the file: copies of cached pages are written behind, so that eviction need not wait for a disk,
// and what is evicted with a copy is found again.
#include <utility>

#include "kv/pool.hpp"
#include "support/guard.hpp"

namespace tessera::detail {
namespace {

// Pages on their way at once: each cannot be evicted meanwhile.
constexpr std::size_t kMostWriting = 8;

}  // namespace

void Pool::add_copy(PrefixNode& node, std::shared_ptr<PageFile::Extent> extent) noexcept {
  node.stored = std::move(extent);
  node.previous_stored = last_stored_;
  node.next_stored = nullptr;
  (last_stored_ != nullptr ? last_stored_->next_stored : first_stored_) = &node;
  last_stored_ = &node;
}

void Pool::remove_copy(PrefixNode& node) noexcept {
  (node.previous_stored != nullptr ? node.previous_stored->next_stored : first_stored_) = node.next_stored;
  (node.next_stored != nullptr ? node.next_stored->previous_stored : last_stored_) = node.previous_stored;
  node.previous_stored = node.next_stored = nullptr;
  node.stored.reset();
}

bool Pool::drop_oldest_copy(Copies of) noexcept {
  PrefixNode* oldest = first_stored_;
  const auto is_clean = [&] { return oldest->page != kNoPage && pages_[oldest->page].references == 0; };
  while (oldest != nullptr && of == Copies::not_clean && is_clean()) oldest = oldest->next_stored;
  if (oldest == nullptr) return false;
  PrefixNode& node = *oldest;
  const PageId id = node.page;
  if (id == kNoPage) {
    const std::size_t before = cached();
    forget(node);
    all_.figures.evictions += 1 + before - cached();
  } else {
    const bool listed = pages_[id].references == 0;
    if (listed) unlink(clean_, id);
    remove_copy(node);
    if (listed) push_back(cached_, id);
  }
  return true;
}

std::shared_ptr<PageFile::Extent> Pool::allocate_stored(Copies of) {
  if (all_.file == nullptr) return nullptr;
  for (;;) {
    if (auto extent = all_.file->allocate(layout_.page_bytes); extent != nullptr) return extent;
    if (!drop_oldest_copy(of)) return nullptr;
  }
}

bool Pool::write_behind(std::uint64_t level) noexcept {
  while (all_.file != nullptr && all_.figures.file_errors == 0 && cached_.size > 0 && writing_ < kMostWriting && all_.occupied() > level) {
    const PageId id = cached_.first;
    share({&id, 1});  // neither evicted nor reused while it is written
    ++writing_;
    ++all_.writing;
    try {
      auto extent = allocate_stored(Copies::not_clean);
      if (extent != nullptr) {
        all_.file->submit({.direction = PageFile::Direction::write,
                           .data = pages_[id].address,
                           .bytes = layout_.page_bytes,
                           .extent = std::move(extent),
                           .done = [this, id](int error, std::shared_ptr<PageFile::Extent> written) {
                             const std::lock_guard lock(all_.mutex);
                             finish_write(id, std::move(written), error);
                           }});
        continue;
      }
    } catch (...) {  // no memory for it: no copy
    }
    finish_write(id, nullptr, -1);
    break;
  }
  return writing_ > 0;
}

void Pool::finish_write(PageId id, std::shared_ptr<PageFile::Extent> extent, int error) noexcept {
  --writing_;
  --all_.writing;
  all_.written.notify_all();
  if (error > 0) ++all_.figures.file_errors;
  if (PrefixNode* node = pages_[id].node; error == 0 && node != nullptr && node->stored == nullptr) {
    add_copy(*node, std::move(extent));
    ++all_.figures.pages_written;
  }
  if (error == 0) {
    release({&id, 1});
    return;
  }
  // As release(), but without trying to write it again at once.
  if (--pages_[id].references > 0) return;
  --used_;
  if (const PrefixNode* node = pages_[id].node; node != nullptr) push_back(list_of(*node), id);
  else make_free(id);
}

void Pool::finish_read(PageId id, bool good) noexcept {
  pages_[id].reading = false;
  if (good) ++all_.figures.pages_read;
  else if (pages_[id].node != nullptr) forget(*pages_[id].node);
}

}  // namespace tessera::detail
