// Pages of one size: their memory, who uses them, and which may be given up.
//
// A page is in one of four states:
//   used    a sequence or more hold it, which are counted (references)
//   cached  nobody holds it, but the prefix index can find it, and it is in memory alone
//   clean   the same, with a copy in the file: evicting it loses nothing
//   free    nobody holds it and nobody can find it
// Cached, clean and free pages are in lists. What was put in first has been unused for longest, and goes first.
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

// A page and where it is from.
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

  // Used pages; KvPools::State::acquire() takes new ones.
  void share(PageId id) noexcept;                      // one more reference
  void share(std::span<const PageId> ids) noexcept;    // one more reference each; kNoPage is skipped
  void release(std::span<const PageId> ids) noexcept;  // one less; kNoPage is skipped
  [[nodiscard]] std::uint32_t references(PageId id) const noexcept { return pages_[id].references; }
  // Whether its only holder may write to it: nobody else has it, and the index does not know it.
  [[nodiscard]] bool is_private(PageId id) const noexcept {
    return pages_[id].references == 1 && pages_[id].indexed == nullptr;
  }
  // Makes a page that one sequence holds private, by taking it out of the index. Whether it is.
  bool make_private(PageId id) noexcept;

  // For KvPools::State::acquire(): has `n` free pages, at the cost of what is cached. cache_full if that cannot be,
  // out_of_memory if Memory gives none. While pages are being written to the file, it may wait for them, and others have
  // the lock meanwhile.
  Status provide(std::size_t n, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] PageId take() noexcept;   // a free page, with one reference; there is one
  void put_back(PageId id) noexcept;      // undoes take()

  // The page, which one sequence or more hold, is in the index from now on.
  void attach(IndexedPage& indexed, PageId id) noexcept;
  // Takes page and copy out of the index; a page that nobody holds becomes free.
  void detach(IndexedPage& indexed) noexcept;

  // Makes a page free: a clean one, else the cached page of longest ago, which is lost. False if there is none.
  bool evict_one() noexcept;
  // Whose copies in the file may go.
  enum class Copies : std::uint8_t {
    any,
    not_clean,  // those of clean pages stay: for the copy of another one that would be no gain, and without end
  };
  // Drops the oldest copy in the file, and with it the page, if it is only there. False if there is none.
  bool drop_oldest_copy(Copies of) noexcept;
  // A part of the file for a page, if need be at the cost of copies; nullptr if there is none.
  [[nodiscard]] std::shared_ptr<PageFile::Extent> allocate_stored(Copies of);
  // Begins to write copies of the cached pages used longest ago, if all pools occupy more than `level` bytes. Whether
  // any is being written now.
  bool write_behind(std::uint64_t level) noexcept;
  // Gives slabs whose pages are all free back to Memory until all pools hold at most `target` bytes.
  void release_slabs(std::uint64_t target) noexcept;

  [[nodiscard]] std::uint64_t slab_bytes() const noexcept { return slab_pages_ * page_bytes_; }
  // Pages in each state; `cached` counts clean ones too.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t cached() const noexcept { return cached_.size + clean_.size; }
  [[nodiscard]] std::size_t clean() const noexcept { return clean_.size; }
  [[nodiscard]] std::size_t free() const noexcept { return free_.size; }
  // For tests: walks every list, and says what is wrong; empty if nothing is.
  [[nodiscard]] std::string check() const;
  [[nodiscard]] PageId ids() const noexcept { return static_cast<PageId>(pages_.size()); }  // those given back too

 private:
  struct Page {
    std::byte* address = nullptr;   // nullptr: its slab was given back
    std::uint32_t references = 0;
    IndexedPage* indexed = nullptr;  // its entry in the index
    PageId previous = kNoPage, next = kNoPage;  // in free_, cached_ or clean_
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
  // A used page's last reference has gone.
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
  IndexedPage* first_stored_ = nullptr;  // all that have a copy, the oldest first
  IndexedPage* last_stored_ = nullptr;
  std::size_t writing_ = 0;  // cached pages on their way to the file
  std::size_t used_ = 0;
};

}  // namespace tessera::detail
