// Inside KvPools: the pages of one layout, and what all pools share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/kv/page_pool.hpp>

#include "kv/prefix_index.hpp"

namespace tessera::detail {

inline constexpr PageId kNoPage = ~PageId{0};

// One layout's pages. All functions are called with the pools' mutex held.
class Pool {
 public:
  Pool(KvPools::State& all, KvLayout layout);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::byte* address(PageId id) const noexcept { return pages_[id].address; }

  // Fills `out` with pages of one reference each, or takes none. cache_full or out_of_memory with bytes needed and free.
  Status acquire(std::span<PageId> out);
  void share(std::span<const PageId> ids) noexcept;    // one more reference each
  void release(std::span<const PageId> ids) noexcept;  // one less; kNoPage is skipped
  [[nodiscard]] std::uint32_t references(PageId id) const noexcept { return pages_[id].references; }
  // Whether its only holder may write to it: nobody else has it, and the index does not know it.
  [[nodiscard]] bool is_private(PageId id) const noexcept { return pages_[id].references == 1 && pages_[id].node == nullptr; }
  // Makes a page that one sequence holds private, by taking it (and what follows it) out of the index. Whether it is.
  bool make_private(PageId id) noexcept;

  // The page that continues `parent` (kNoPage: the beginning) with `tokens`, with one more reference; or kNoPage.
  [[nodiscard]] PageId find(std::string_view identity, PageId parent, std::span<const Token> tokens) noexcept;
  // Offers a full page to the index. The page to use from now on: another one, if the index knows the same already (then
  // `id` has been released and the other one shared). kNoPage: it was not taken (no memory, or the parent is not known).
  [[nodiscard]] PageId publish(std::string_view identity, PageId parent, std::span<const Token> tokens, PageId id) noexcept;

  // Evicts the cached page of longest ago. False if there is none.
  bool evict_one() noexcept;
  // Gives slabs without a used or cached page back to Memory until `held` is at most `target`.
  void release_slabs(std::uint64_t target) noexcept;

  [[nodiscard]] std::uint64_t page_bytes() const noexcept { return layout_.page_bytes; }
  [[nodiscard]] std::uint64_t slab_bytes() const noexcept { return slab_pages_ * layout_.page_bytes; }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t cached() const noexcept { return cached_.size; }
  [[nodiscard]] std::size_t free() const noexcept { return free_.size; }
  // For tests: walks every list, and says what is wrong; empty if nothing is.
  [[nodiscard]] std::string check() const;
  [[nodiscard]] PageId ids() const noexcept { return static_cast<PageId>(pages_.size()); }  // those given back too

 private:
  struct Page {
    std::byte* address = nullptr;   // nullptr: its slab was given back
    std::uint32_t references = 0;
    PrefixNode* node = nullptr;     // in the index
    PageId previous = kNoPage, next = kNoPage;  // in free_ or cached_
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
  Status grow();

  KvPools::State& all_;
  KvLayout layout_;
  std::uint64_t slab_pages_;
  std::vector<Page> pages_;  // [slabs * slab_pages_]
  std::vector<Slab> slabs_;
  List free_, cached_;       // cached_: the one used longest ago first
  std::size_t used_ = 0;
  PrefixIndex index_;
};

}  // namespace tessera::detail

namespace tessera {

struct KvPools::State {
  KvPoolOptions options;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<detail::Pool>> pools;
  KvFigures figures;  // the counters, and held_bytes

  // The pool of this layout, made when it is first asked for. Throws bad_alloc.
  detail::Pool& pool(const KvLayout& layout);
  // Pages in use and cached, in bytes.
  [[nodiscard]] std::uint64_t occupied() const noexcept;
  // Gives up cached pages, then free slabs, until what nobody uses is within `keep`.
  void settle() noexcept;
  // Room within the budget for `bytes` more, if need be at the cost of what other pools than `asking` have cached or free.
  [[nodiscard]] bool make_room(std::uint64_t bytes, const detail::Pool& asking) noexcept;
};

}  // namespace tessera
