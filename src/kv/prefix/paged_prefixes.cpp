// PagedStorage: a sequence takes the pages of its beginning from the prefix index, and offers its own.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "kv/pages/paged_storage.hpp"

namespace tessera::detail {

PrefixNode* PagedStorage::published_tail() const noexcept { return tail_.lock().get(); }  // the node lives while the mutex is held

// Finds the nodes that the inputs lead to. Call this function, published_tail(), count_as_published(), take_present(), take_stored() and
// adopt_published() with the pools' mutex held. adopt(), publish() and limit_published() lock the mutex themselves.
PagedStorage::Found PagedStorage::look_up(const PrefixQuestion& question, Stored stored) const {
  PrefixNode* const after = published_ == 0 ? pools_->index.root(question.identity, pooled_) : published_tail();
  return find_pages(pools_->index, after, pooled_, question, size() == 0 ? SequenceHas::nothing : SequenceHas::tokens, stored);
}

void PagedStorage::count_as_published(const Found& found) noexcept {
  published_ += found.pages;
  if (found.pages <= found.nodes.size()) tail_ = found.nodes[found.pages - 1]->weak_from_this();
  else tail_.reset();  // the index has lost the node meanwhile
}

std::uint64_t PagedStorage::take_present(const Found& found) noexcept {
  if (found.pages == 0) return 0;
  for (std::size_t group = 0; group < groups(); ++group) {
    for (std::uint64_t i = 0; i < found.pages; ++i) {
      const PageId id = i < found.from[group] ? kNoPage : found.nodes[i]->pages[group].id;
      if (id != kNoPage) pool(group).share(id);
      ids_[group].push_back(id);
      pages_[group].push_back(id != kNoPage ? pool(group).address(id) : nullptr);
    }
  }
  count_as_published(found);
  return found.pages;
}

std::uint64_t PagedStorage::take_stored(const Found& found, const PrefixQuestion& question,
                                        std::unique_lock<std::mutex>& lock) {
  // A page that must be read from the file. Holding the extent keeps the page's copy in the file, even if the index loses the page
  // meanwhile. (Found pages that are in memory are not read; they get a reference.)
  struct Read {
    Place at;
    std::shared_ptr<PageFile::Extent> from;
  };
  const std::uint64_t before = size();
  std::vector<Read> to_read;
  std::vector<PoolPage> fresh, held;
  to_read.reserve(groups() * found.pages);
  fresh.reserve(to_read.capacity());
  held.reserve(to_read.capacity());
  PageReads reads(pools_->file.get());
  for (std::size_t group = 0; group < groups(); ++group) {
    for (std::uint64_t i = found.from[group]; i < found.pages; ++i) {
      const IndexedPage& page = found.nodes[i]->pages[group];
      if (page.id != kNoPage) {
        pool(group).share(page.id);
        held.push_back({.pool = &pool(group), .id = page.id});
      } else {
        to_read.push_back({.at = {group, i}, .from = page.stored});
        fresh.push_back({.pool = &pool(group)});
      }
    }
  }
  const Status status = guard([&]() -> Status {
    TESSERA_TRY_STATUS(pools_->acquire(fresh, lock));
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      reads.add(fresh[i].pool->address(fresh[i].id), fresh[i].pool->page_bytes(), to_read[i].from);
    }
    return {};
  });
  lock.unlock();
  reads.wait();
  lock.lock();
  const auto& errors = reads.errors();
  const bool read = status && std::ranges::all_of(errors, [](int error) { return error == 0; });
  Found now;  // the nodes after the wait, in which the index may have changed
  const Status looked = guard([&]() -> Status {
    now = look_up(question, Stored::too);
    return {};
  });
  if (!read || !looked) {
    // The index forgets the first page that cannot be read.
    const auto bad = static_cast<std::size_t>(std::ranges::find_if(errors, [](int error) { return error != 0; }) - errors.begin());
    if (status && looked && bad < errors.size() && to_read[bad].at.page < now.nodes.size()) {
      IndexedPage& page = now.nodes[to_read[bad].at.page]->pages[to_read[bad].at.group];
      if (page.id == kNoPage && page.stored == to_read[bad].from) pools_->lose(page);
    }
    pools_->release(fresh);
    pools_->release(held);
    return 0;
  }
  pools_->figures.pages_read += errors.size();
  for (std::size_t group = 0; group < groups(); ++group) {
    ids_[group].resize(before + found.pages, kNoPage);
    pages_[group].resize(before + found.pages, nullptr);
  }
  for (std::size_t i = 0; i < to_read.size(); ++i) {
    const Place& at = to_read[i].at;
    PageId id = fresh[i].id;
    fresh[i].id = kNoPage;
    if (at.page < now.nodes.size()) {
      IndexedPage& page = now.nodes[at.page]->pages[at.group];
      if (page.id == kNoPage) {
        pool(at.group).attach(page, id);
      } else {  // another sequence has read the same page meanwhile: takes that page, and gives back the page that was read here
        pool(at.group).share(page.id);
        fresh[i].id = std::exchange(id, page.id);
      }
    }
    set({at.group, before + at.page}, id);
  }
  std::size_t next = 0;
  for (std::size_t group = 0; group < groups(); ++group) {
    for (std::uint64_t i = found.from[group]; i < found.pages; ++i) {
      if (ids_[group][before + i] == kNoPage) set({group, before + i}, held[next++].id);
    }
  }
  now.pages = found.pages;
  count_as_published(now);
  pools_->release(fresh);  // comes last, because it may evict pages, so that nodes leave the index
  return found.pages;
}

std::uint64_t PagedStorage::adopt_published(const PrefixQuestion& question, std::unique_lock<std::mutex>& lock) {
  reserve_tables(size() + question.inputs.size() / layout_.page_tokens);
  const Found found = look_up(question, Stored::too);
  const auto is_stored = [&](std::size_t group) {
    const auto taken = std::span(found.nodes).first(found.pages).subspan(found.from[group]);
    return std::ranges::any_of(taken, [group](const PrefixNode* node) { return node->pages[group].id == kNoPage; });
  };
  bool any_stored = false;
  for (std::size_t group = 0; group < groups() && found.pages > 0; ++group) any_stored = any_stored || is_stored(group);
  if (!any_stored) return take_present(found);
  if (const std::uint64_t pages = take_stored(found, question, lock); pages > 0) return pages;
  return take_present(look_up(question, Stored::excluded));
}

std::uint64_t PagedStorage::adopt(const PrefixQuestion& question) noexcept {
  if (suspended_ != nullptr || question.inputs.size() < layout_.page_tokens) return 0;
  std::uint64_t found = 0;
  std::unique_lock lock(pools_->mutex);
  try {
    if (published_ == size()) found = adopt_published(question, lock);
  } catch (const std::bad_alloc&) {  // counts as a miss
  }
  KvFigures& figures = pools_->figures;
  if (found > 0) {
    ++figures.hits;
    figures.tokens_saved += found * layout_.page_tokens;
  } else {
    ++figures.misses;
  }
  return found;
}

bool PagedStorage::publish(std::string_view identity, std::uint64_t i, const KvInputs& page) noexcept {
  const std::lock_guard lock(pools_->mutex);
  PrefixIndex& index = pools_->index;
  if (i != published_) return false;
  PrefixNode* parent = nullptr;
  try {
    parent = i == 0 ? index.root(identity, pooled_) : published_tail();
    if (parent == nullptr && i > 0) return false;  // the index has lost the page before
    if (parent == nullptr) parent = &index.add_root(identity, pooled_);
    PrefixNode* node = index.child(*parent, page);
    if (node == nullptr) {
      bool has_page = false;
      for (std::size_t group = 0; group < groups(); ++group) has_page = has_page || (ids_[group][i] != kNoPage && group != state_group_);
      if (!has_page && !pools_->may_have_empty_node()) {
        if (parent->is_root()) index.drop_childless(*parent);
        return false;
      }
      node = &index.add_child(*parent, page);
      index.count_empty(*node);
    }
    for (std::size_t group = 0; group < groups(); ++group) {
      const PageId mine = ids_[group][i];
      IndexedPage& indexed = node->pages[group];
      replaced_[group] = kNoPage;
      if (mine == kNoPage || indexed.id == mine) continue;  // the window has passed the page, or the index has it
      if (group == state_group_ && (i + 1) % layout_.state_pages != 0) continue;  // a checkpoint that only this sequence needs
      if (indexed.id == kNoPage) {
        pool(group).attach(indexed, mine);  // the index had the page only in the file, or not at all
      } else {  // another sequence has offered a page with the same bits
        pool(group).share(indexed.id);
        set({group, i}, indexed.id);
        replaced_[group] = mine;
      }
    }
    tail_ = node->weak_from_this();
    published_ = i + 1;
    // The release comes last, because it may evict pages, so that nodes leave the index.
    for (std::size_t group = 0; group < groups(); ++group) pool(group).release({&replaced_[group], 1});
    return true;
  } catch (const std::bad_alloc&) {  // no error: other sequences just do not find the page
    if (parent != nullptr && parent->is_root()) index.drop_childless(*parent);
    return false;
  }
}

void PagedStorage::limit_published(std::uint64_t n) noexcept {
  if (n >= published_) return;
  const std::lock_guard lock(pools_->mutex);
  PrefixNode* node = published_tail();
  for (; published_ > n; --published_) {
    if (node != nullptr) node = node->parent;
  }
  if (n == 0 || node == nullptr) tail_.reset();
  else tail_ = node->weak_from_this();
}

}  // namespace tessera::detail
