// A PagePool has all pages of one size: it keeps their memory, counts their references, and decides in which order they are evicted.
//
// A page is in one of four states:
//   used    one or more sequences hold the page; `references` is how many
//   cached  no sequence holds the page, but the prefix index can find it; it is only in memory
//   clean   like cached, but there is a copy in the file, so evicting the page loses nothing
//   free    no sequence holds the page, and the index does not know it
// There are three lists: of the cached, the clean and the free pages. The first page of a list is the page that was unused longest, and is
// taken first.
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

// A page, named by its pool and its id in that pool.
struct PoolPage {
  PagePool* pool = nullptr;
  PageId id = kNoPage;
};

// Call all functions with the pools' mutex held.
class PagePool {
 public:
  PagePool(KvPools::State& all, std::uint64_t page_bytes);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();

  [[nodiscard]] std::uint64_t page_bytes() const noexcept { return page_bytes_; }
  [[nodiscard]] std::byte* address(PageId id) const noexcept { return pages_[id].address; }

  // Add and remove references to pages. (New pages come from KvPools::State::acquire().)
  void share(PageId id) noexcept;                      // adds a reference
  void share(std::span<const PageId> ids) noexcept;    // adds a reference to each page; skips kNoPage
  void release(std::span<const PageId> ids) noexcept;  // removes one reference from each page; skips kNoPage
  [[nodiscard]] std::uint32_t references(PageId id) const noexcept { return pages_[id].references; }
  // Returns whether the sequence that holds the page may write to it: no other sequence holds the page, and the index does not know it.
  [[nodiscard]] bool is_private(PageId id) const noexcept {
    return pages_[id].references == 1 && pages_[id].indexed == nullptr;
  }
  // Makes the page writable for the only sequence that holds it, and returns true. If the index has the page, takes it out of the index
  // first. If several sequences hold the page, does nothing and returns false.
  bool make_private(PageId id) noexcept;

  // Makes sure that there are `n` free pages, for KvPools::State::acquire(). Evicts cached pages if necessary. If pages are being written
  // to the file, this may wait for them, with the lock released. Errors: cache_full, the budget has no room; out_of_memory, Memory has
  // none.
  Status provide(std::size_t n, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] PageId take() noexcept;   // takes a free page, with one reference. Precondition: a page is free
  void put_back(PageId id) noexcept;      // undoes take()

  // Puts a used page into the index.
  void attach(IndexedPage& indexed, PageId id) noexcept;
  // Takes the page and its copy in the file out of the index. If no sequence holds the page, it becomes free.
  void detach(IndexedPage& indexed) noexcept;

  // Makes one page free: the clean page that was unused longest or, if there is none, the cached page that was unused longest, which the
  // index then loses. Returns false if there is neither.
  bool evict_one() noexcept;
  // Says which copies in the file may be dropped.
  enum class Copies : std::uint8_t {
    any,
    not_clean,  // all except copies of clean pages: to drop such a copy in order to write another gains nothing, and could go on for ever
  };
  // Drops the oldest copy that may be dropped. If its page is not in memory, the page is lost. Returns false if there is no such copy.
  bool drop_oldest_copy(Copies of) noexcept;
  // Returns a range of the file for one page. Drops copies if necessary. nullptr: there is no room.
  [[nodiscard]] std::shared_ptr<PageFile::Extent> allocate_stored(Copies of);
  // Begins to write copies of the cached pages that were unused longest, if all pools together have more than `level` bytes of used and
  // cached pages. (With a copy in the file, a page can be evicted without loss.) Returns whether any page is being written now.
  bool write_behind(std::uint64_t level) noexcept;
  // Gives slabs in which all pages are free back to Memory, until all pools together hold at most `target` bytes.
  void release_slabs(std::uint64_t target) noexcept;

  [[nodiscard]] std::uint64_t slab_bytes() const noexcept { return slab_pages_ * page_bytes_; }
  // Return how many pages are in a state. cached() includes the clean pages.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t cached() const noexcept { return cached_.size + clean_.size; }
  [[nodiscard]] std::size_t clean() const noexcept { return clean_.size; }
  [[nodiscard]] std::size_t free() const noexcept { return free_.size; }
  // For tests: checks all lists and counts, and returns a text that says what is wrong; empty if nothing is.
  [[nodiscard]] std::string check() const;
  // Returns the number of ids, including the ids of pages whose slab was given back.
  [[nodiscard]] PageId ids() const noexcept { return static_cast<PageId>(pages_.size()); }

 private:
  struct Page {
    std::byte* address = nullptr;   // nullptr: its slab was given back
    std::uint32_t references = 0;
    IndexedPage* indexed = nullptr;  // the page's entry in the index; nullptr: none
    PageId previous = kNoPage, next = kNoPage;  // neighbours in the list of its state: free_, cached_ or clean_
  };
  struct List {
    PageId first = kNoPage, last = kNoPage;
    std::size_t size = 0;
  };
  struct Slab {
    std::byte* base = nullptr;      // nullptr: the slab was given back
    std::uint64_t busy = 0;         // number of pages that are not free
  };

  void push_back(List& list, PageId id) noexcept;
  void unlink(List& list, PageId id) noexcept;
  void make_free(PageId id) noexcept;
  // Called when the last reference to a used page is gone: the page becomes cached, clean or free.
  void put_down(PageId id) noexcept;
  [[nodiscard]] List& list_of(const IndexedPage& indexed) noexcept { return indexed.stored != nullptr ? clean_ : cached_; }
  void add_copy(IndexedPage& indexed, std::shared_ptr<PageFile::Extent> extent) noexcept;
  void remove_copy(IndexedPage& indexed) noexcept;
  void finish_write(PageId id, std::shared_ptr<PageFile::Extent> extent, int error) noexcept;
  Status grow();

  KvPools::State& all_;
  std::uint64_t page_bytes_;
  std::uint64_t slab_pages_;
  std::vector<Page> pages_;  // [number of slabs * slab_pages_], by id
  std::vector<Slab> slabs_;
  List free_;
  List cached_, clean_;
  IndexedPage* first_stored_ = nullptr;  // head of the list of pages that have a copy, the oldest copy first
  IndexedPage* last_stored_ = nullptr;
  std::size_t writing_ = 0;  // number of cached pages that are being written to the file
  std::size_t used_ = 0;
};

}  // namespace tessera::detail
