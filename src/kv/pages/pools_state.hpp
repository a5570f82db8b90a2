// The state of KvPools, which all pools share: the budget, the file and the prefix index.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tessera/extend/kv/kv_pools.hpp>

#include "kv/pages/page_pool.hpp"
#include "kv/step_pages.hpp"
#include "kv/prefix/prefix_index.hpp"

namespace tessera {

namespace detail {
class KvStorage;
}

// All functions are called with the mutex held.
struct [[gnu::visibility("hidden")]] KvPools::State : std::enable_shared_from_this<KvPools::State> {
  explicit State(const KvPoolOptions& with);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file != nullptr) file->stop();  // jobs of the file refer to the pools
  }

  KvPoolOptions options;
  mutable std::mutex mutex;
  std::size_t writing = 0;                 // pages that are being written to the file; they count as used
  std::condition_variable written;         // notified when a page has been written, or could not be
  std::unique_ptr<detail::PageFile> file;  // nullptr: no file
  std::vector<std::unique_ptr<detail::PagePool>> pools;  // one for each page size
  std::vector<std::unique_ptr<detail::PooledLayout>> layouts;
  detail::PrefixIndex index;  // destroyed before the pools and the file, to which its nodes refer
  KvFigures figures;          // counters and held_bytes
  std::vector<detail::KvStorage*> contiguous;  // contiguous caches by their numbers; nullptr: the number is not used
  bool keeps_copies = false;                // see keep_copies()
  std::vector<detail::PageCopy> copies;     // pages that were copied since take_copies()

  // Returns the pools of this layout, which are made at the first call. Throws bad_alloc.
  const detail::PooledLayout& pooled(const KvLayout& layout);
  // Gives a contiguous cache a number, until leave(). Throws bad_alloc.
  std::uint32_t enter(detail::KvStorage& cache);
  void leave(std::uint32_t number) noexcept { contiguous[number] = nullptr; }

  // Takes a page for each element of `out`: the caller has set the element's pool, and acquire() sets its id. Takes all these pages, with
  // one reference each, or none. While pages are being written to the file, acquire() may wait for these pages. It releases the lock while
  // it waits, so the pools may have changed when it returns. Errors: cache_full or out_of_memory, with the bytes needed and free.
  Status acquire(std::span<detail::PoolPage> out, std::unique_lock<std::mutex>& lock);
  void release(std::span<const detail::PoolPage> pages) noexcept;
  // Returns whether these pages can be acquired without more memory than options.keep. Pages that are free or cached need no further
  // memory, because cached pages can be evicted. So the result may be true even if the pools hold more than options.keep already.
  [[nodiscard]] bool within_keep(std::span<const detail::PoolPage> wanted) const noexcept {
    return obtainable(wanted, options.keep);
  }

  // Returns the bytes of the budget that no sequence uses. If there is no budget, returns the largest 64-bit number.
  [[nodiscard]] std::uint64_t room() const noexcept;
  // Returns the bytes of used and cached pages.
  [[nodiscard]] std::uint64_t occupied() const noexcept;
  // First evicts cached pages until used and cached pages together are within options.keep. Then gives back free slabs until all memory
  // held is within options.keep. Does both as far as possible.
  void settle() noexcept;
  // Makes room for `bytes` bytes that the pool `asking` will take from the system. While the memory of all pools plus `bytes` is more than
  // options.keep, evicts cached pages and gives back free slabs of the other pools, as far as possible. Returns whether the memory of all
  // pools plus `bytes` is within the budget then.
  [[nodiscard]] bool make_room(std::uint64_t bytes, const detail::PagePool& asking) noexcept;
  // Evicts all cached pages of the pools other than `asking`, then gives back to the system those slabs of these pools in which every page
  // is free. Returns whether any memory was given back.
  bool reclaim(const detail::PagePool& asking) noexcept;

  // Removes a page and its copy from the index, and also the nodes that are useless without the page:
  // - If the page's group has neither a window nor states: its node and all nodes below the node, because no sequence could use their pages.
  // - Otherwise, if its node still has another page: no node.
  // - If its node has no page and no child: the node.
  // - If its node has no page but children: nothing, so that the children can still be found. Exception: if the index has more nodes without
  //   pages than there are pages, the node and all nodes below it.
  void lose(detail::IndexedPage& page) noexcept;
  // Returns whether the index may get another node without any page.
  [[nodiscard]] bool may_have_empty_node() const noexcept { return index.empty() < pages(); }
  // Returns the number of cached pages in memory.
  [[nodiscard]] std::size_t cached_pages() const noexcept;

 private:
  [[nodiscard]] bool obtainable(std::span<const detail::PoolPage> wanted, std::uint64_t limit) const noexcept;
  [[nodiscard]] Error no_room(std::span<const detail::PoolPage> wanted) const noexcept;
  [[nodiscard]] std::size_t pages() const noexcept;  // used and cached pages
};

}  // namespace tessera
