// A PagePool has all pages of one size: their memory, their references, and the order in which they may be given up.
//
// A page is in one of four states:
//   used    one or more sequences hold the page; their number is counted (references)
//   cached  no sequence holds the page, the prefix index can find it, and it is only in memory
//   clean   as cached, with a copy in the file: evicting the page loses nothing
//   free    no sequence holds the page, and the index does not know it
// Cached, clean and free pages are in lists. The first page of a list has been unused longest, and is taken first.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <tessera/extend/kv/kv_pools.hpp>

#include "kv/prefix/prefix_index.hpp"

namespace tessera::detail {

// A page and its pool.
struct PoolPage {
  PagePool* pool = nullptr;
  PageId id = kNoPage;
};

// All functions are called with the pools' mutex held.
class PagePool {
 public:
  PagePool(KvPools::State& all, std::uint64_t page_bytes);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();

  [[nodiscard]] std::uint64_t page_bytes() const noexcept { return page_bytes_; }
  [[nodiscard]] std::byte* address(PageId id) const noexcept { return pages_[id].address; }

  // References of pages. KvPools::State::acquire() takes new pages.
  void share(PageId id) noexcept;                      // adds a reference
  void share(std::span<const PageId> ids) noexcept;    // adds a reference to each page; skips kNoPage
  void release(std::span<const PageId> ids) noexcept;  // removes a reference of each page; skips kNoPage
  [[nodiscard]] std::uint32_t references(PageId id) const noexcept { return pages_[id].references; }
  // Returns whether the page's holder may write to it: no other sequence holds it, and the index does not know it.
  [[nodiscard]] bool is_private(PageId id) const noexcept {
    return pages_[id].references == 1 && pages_[id].indexed == nullptr;
  }
  // Makes a page private by taking it out of the index, if only one sequence holds it. Returns whether the page is private.
  bool make_private(PageId id) noexcept;

  // Makes sure of `n` free pages, for KvPools::State::acquire(); evicts cached pages if need be. While pages are being written to the file,
  // this may wait for them and release the lock meanwhile. Errors: cache_full, there is no room; out_of_memory, Memory gives none.
  Status provide(std::size_t n, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] PageId take() noexcept;   // takes a free page, with one reference; there must be one
  void put_back(PageId id) noexcept;      // undoes take()

  // Puts a used page into the index.
  void attach(IndexedPage& indexed, PageId id) noexcept;
  // Takes the page and its copy out of the index. A page that no sequence holds becomes free.
  void detach(IndexedPage& indexed) noexcept;

  // Makes a page free: a clean one, else the cached page used longest ago, which the index loses. Returns false if there is none.
  bool evict_one() noexcept;
  // The copies in the file that may be dropped.
  enum class Copies : std::uint8_t {
    any,
    not_clean,  // all but copies of clean pages: to drop one copy in order to write another gains nothing, and could repeat for ever
  };
  // Drops the oldest of these copies. If the page is only in the file, the page is lost with it. Returns false if there is no copy.
  bool drop_oldest_copy(Copies of) noexcept;
  // Returns a range of the file for a page; drops copies if need be. nullptr: there is none.
  [[nodiscard]] std::shared_ptr<PageFile::Extent> allocate_stored(Copies of);
  // Begins to write copies of the cached pages used longest ago, if all pools occupy more than `level` bytes. Returns whether any page is
  // being written now.
  bool write_behind(std::uint64_t level) noexcept;
  // Gives slabs whose pages are all free back to Memory until all pools hold at most `target` bytes.
  void release_slabs(std::uint64_t target) noexcept;

  [[nodiscard]] std::uint64_t slab_bytes() const noexcept { return slab_pages_ * page_bytes_; }
  // Return the number of pages in a state; cached() counts clean pages too.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t cached() const noexcept { return cached_.size + clean_.size; }
  [[nodiscard]] std::size_t clean() const noexcept { return clean_.size; }
  [[nodiscard]] std::size_t free() const noexcept { return free_.size; }
  // Walks every list and returns what is wrong; empty: nothing. For tests.
  [[nodiscard]] std::string check() const;
  [[nodiscard]] PageId ids() const noexcept { return static_cast<PageId>(pages_.size()); }  // ids of pages, given back ones included

 private:
  struct Page {
    std::byte* address = nullptr;   // nullptr: its slab was given back
    std::uint32_t references = 0;
    IndexedPage* indexed = nullptr;  // the page's entry in the index
    PageId previous = kNoPage, next = kNoPage;  // neighbours in free_, cached_ or clean_
  };
  struct List {
    PageId first = kNoPage, last = kNoPage;
    std::size_t size = 0;
  };
  struct Slab {
    std::byte* base = nullptr;      // nullptr: given back
    std::uint64_t busy = 0;         // pages that are not free
  };

  void push_back(List& list, PageId id) noexcept;
  void unlink(List& list, PageId id) noexcept;
  void make_free(PageId id) noexcept;
  // Moves a used page whose last reference is gone to its new state: cached, clean or free.
  void put_down(PageId id) noexcept;
  [[nodiscard]] List& list_of(const IndexedPage& indexed) noexcept { return indexed.stored != nullptr ? clean_ : cached_; }
  void add_copy(IndexedPage& indexed, std::shared_ptr<PageFile::Extent> extent) noexcept;
  void remove_copy(IndexedPage& indexed) noexcept;
  void finish_write(PageId id, std::shared_ptr<PageFile::Extent> extent, int error) noexcept;
  Status grow();

  KvPools::State& all_;
  std::uint64_t page_bytes_;
  std::uint64_t slab_pages_;
  std::vector<Page> pages_;  // [slabs * slab_pages_]
  std::vector<Slab> slabs_;
  List free_;
  List cached_, clean_;
  IndexedPage* first_stored_ = nullptr;  // list of pages with a copy, the oldest copy first
  IndexedPage* last_stored_ = nullptr;
  std::size_t writing_ = 0;  // cached pages that are being written to the file
  std::size_t used_ = 0;
};

}  // namespace tessera::detail
