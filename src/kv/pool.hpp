// Inside KvPools: the pages of one layout, and what all pools share.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/kv/page_pool.hpp>

#include "kv/prefix_index.hpp"

namespace tessera::detail {

// One layout's pages. All functions are called with the pools' mutex held.
class Pool {
 public:
  Pool(KvPools::State& all, KvLayout layout);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::byte* address(PageId id) const noexcept { return pages_[id].address; }

  // Fills `out` with pages of one reference each, or takes none. cache_full or out_of_memory with bytes needed and
  // free. While pages are being written to the file, it may wait for them, and others have the lock meanwhile.
  Status acquire(std::span<PageId> out, std::unique_lock<std::mutex>& lock);
  void share(std::span<const PageId> ids) noexcept;    // one more reference each
  void release(std::span<const PageId> ids) noexcept;  // one less; kNoPage is skipped
  // Whether `n` pages can be had without holding more than `keep`, at the cost of what is cached.
  [[nodiscard]] bool within_keep(std::size_t n) const noexcept;
  [[nodiscard]] std::uint32_t references(PageId id) const noexcept { return pages_[id].references; }
  // Whether its only holder may write to it: nobody else has it, and the index does not know it.
  [[nodiscard]] bool is_private(PageId id) const noexcept { return pages_[id].references == 1 && pages_[id].node == nullptr; }
  // Makes a page that one sequence holds private, by taking it (and what follows it) out of the index. Whether it is.
  bool make_private(PageId id) noexcept;

  // The page that continues `parent` (kNoPage: the beginning) with `tokens`, with one more reference; or kNoPage. With
  // `read_from`, the page is only in the file: the caller reads it, and then calls finish_read(). Others do not find it
  // before.
  struct Found {
    PageId id = kNoPage;
    std::shared_ptr<PageFile::Extent> read_from = {};
  };
  [[nodiscard]] Found find(std::string_view identity, PageId parent, std::span<const Token> tokens,
                           std::unique_lock<std::mutex>& lock) noexcept;
  void finish_read(PageId id, bool good) noexcept;  // not good: the index forgets the page
  // Offers a full page to the index. The page to use from now on: another one, if the index knows the same already
  // (then `id` has been released and the other one shared). kNoPage: it was not taken (no memory, or the parent is not
  // known).
  [[nodiscard]] PageId publish(std::string_view identity, PageId parent, std::span<const Token> tokens, PageId id) noexcept;

  // Makes a page free: one whose copy is in the file, else the cached page of longest ago, which is lost. False if
  // there is none.
  bool evict_one() noexcept;
  // Whose copies in the file may go.
  enum class Copies : std::uint8_t {
    any,
    not_clean,  // those of cached pages stay: for the copy of another one that would be no gain, and without end
  };
  // Drops the oldest copy in the file, and with it the page, if it is only there. False if there is none.
  bool drop_oldest_copy(Copies of) noexcept;
  // A part of the file for a page, if need be at the cost of copies; nullptr if there is none.
  [[nodiscard]] std::shared_ptr<PageFile::Extent> allocate_stored(Copies of);
  // Begins to write copies of the cached pages used longest ago, if all pools occupy more than `level` bytes. Whether
  // any is being written now.
  bool write_behind(std::uint64_t level) noexcept;
  // Gives slabs without a used or cached page back to Memory until `held` is at most `target`.
  void release_slabs(std::uint64_t target) noexcept;

  [[nodiscard]] std::uint64_t page_bytes() const noexcept { return layout_.page_bytes; }
  [[nodiscard]] std::uint64_t slab_bytes() const noexcept { return slab_pages_ * layout_.page_bytes; }
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
    PrefixNode* node = nullptr;     // in the index
    bool reading = false;           // from the file: not to be found yet
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
  void forget(PrefixNode& node) noexcept;
  [[nodiscard]] List& list_of(const PrefixNode& node) noexcept { return node.stored != nullptr ? clean_ : cached_; }
  void add_copy(PrefixNode& node, std::shared_ptr<PageFile::Extent> extent) noexcept;
  void remove_copy(PrefixNode& node) noexcept;
  void finish_write(PageId id, std::shared_ptr<PageFile::Extent> extent, int error) noexcept;
  Status grow();
  [[nodiscard]] std::uint64_t obtainable() const noexcept;
  [[nodiscard]] std::uint64_t obtainable_within(std::uint64_t limit) const noexcept;
  [[nodiscard]] Error no_room(std::size_t pages) const noexcept;

  KvPools::State& all_;
  KvLayout layout_;
  std::uint64_t slab_pages_;
  std::vector<Page> pages_;  // [slabs * slab_pages_]
  std::vector<Slab> slabs_;
  List free_;
  List cached_, clean_;      // in the index alone, the one used longest ago first; clean_: with a copy in the file
  PrefixNode* first_stored_ = nullptr;
  PrefixNode* last_stored_ = nullptr;
  std::size_t writing_ = 0;  // cached pages on their way to the file
  std::size_t used_ = 0;
  PrefixIndex index_;
};

}  // namespace tessera::detail

namespace tessera {

struct [[gnu::visibility("hidden")]] KvPools::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file != nullptr) file->stop();  // its jobs know the pools
    pools.clear();                      // they know the file
  }

  KvPoolOptions options;
  mutable std::mutex mutex;
  std::size_t writing = 0;                 // pages on their way to the file; they count as used
  std::condition_variable written;         // one of them has arrived, or failed
  std::unique_ptr<detail::PageFile> file;  // nullptr: none
  std::vector<std::unique_ptr<detail::Pool>> pools;
  KvFigures figures;  // the counters, and held_bytes

  // The pool of this layout, made when it is first asked for. Throws bad_alloc.
  detail::Pool& pool(const KvLayout& layout);
  // Pages in use and cached, in bytes.
  [[nodiscard]] std::uint64_t occupied() const noexcept;
  // Gives up cached pages, then free slabs, until what nobody uses is within `keep`.
  void settle() noexcept;
  // Room for `bytes` more: within `keep` if that is possible at the cost of what other pools than `asking` have cached
  // or free, at any rate within the budget.
  [[nodiscard]] bool make_room(std::uint64_t bytes, const detail::Pool& asking) noexcept;
  // Gives back all memory that other pools than `asking` have cached or free. Whether that was any.
  bool reclaim(const detail::Pool& asking) noexcept;
};

}  // namespace tessera
