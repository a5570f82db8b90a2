// Inside KvPools: what all pools share. That is the budget, the file and the prefix index.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tessera/extend/kv/kv_pools.hpp>

#include "kv/pages/page_pool.hpp"
#include "kv/prefix/prefix_index.hpp"

namespace tessera {

// All functions are called with the mutex held.
struct [[gnu::visibility("hidden")]] KvPools::State {
  explicit State(const KvPoolOptions& with);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file != nullptr) file->stop();  // its jobs know the pools
  }

  KvPoolOptions options;
  mutable std::mutex mutex;
  std::size_t writing = 0;                 // pages on their way to the file; they count as used
  std::condition_variable written;         // one of them has arrived, or failed
  std::unique_ptr<detail::PageFile> file;  // nullptr: none
  std::vector<std::unique_ptr<detail::PagePool>> pools;  // each of another page size
  std::vector<std::unique_ptr<detail::PooledLayout>> layouts;
  detail::PrefixIndex index;  // before the pools and the file in destruction: its nodes know them
  KvFigures figures;          // the counters, and held_bytes

  // The pools of this layout, made when they are first asked for. Throws bad_alloc.
  const detail::PooledLayout& pooled(const KvLayout& layout);

  // Fills in the ids of `out`, whose pools are given: pages of one reference each, or none. cache_full or out_of_memory
  // with bytes needed and free. While pages are being written to the file, it may wait for them, and others have the
  // lock meanwhile.
  Status acquire(std::span<detail::PoolPage> out, std::unique_lock<std::mutex>& lock);
  void release(std::span<const detail::PoolPage> pages) noexcept;
  // Whether such pages can be had without holding more than `keep`, at the cost of what is cached.
  [[nodiscard]] bool within_keep(std::span<const detail::PoolPage> wanted) const noexcept {
    return obtainable(wanted, options.keep);
  }

  // Bytes of the budget that no sequence uses. Without a budget: the largest number.
  [[nodiscard]] std::uint64_t room() const noexcept;
  // Used and cached pages, in bytes.
  [[nodiscard]] std::uint64_t occupied() const noexcept;
  // Gives up cached pages, then free slabs, until what nobody uses is within `keep`.
  void settle() noexcept;
  // Room for `bytes` more: within `keep` if that is possible at the cost of what other pools than `asking` have cached
  // or free, at any rate within the budget.
  [[nodiscard]] bool make_room(std::uint64_t bytes, const detail::PagePool& asking) noexcept;
  // Gives back all memory that other pools than `asking` have cached or free. Whether that was any.
  bool reclaim(const detail::PagePool& asking) noexcept;

  // The index loses a page and its copy. With a page of keys and values of a group without a window it loses everything that
  // follows it, for nobody could use that any more. Behind a window, and of a state, it keeps what follows, as long as there are no more nodes without
  // any page than there are pages.
  void lose(detail::IndexedPage& page) noexcept;
  // Whether another node without any page may be in the index.
  [[nodiscard]] bool may_have_empty_node() const noexcept { return index.empty() < pages(); }
  // Copies that are in the file alone do not count.
  [[nodiscard]] std::size_t cached_pages() const noexcept;

 private:
  [[nodiscard]] bool obtainable(std::span<const detail::PoolPage> wanted, std::uint64_t limit) const noexcept;
  [[nodiscard]] Error no_room(std::span<const detail::PoolPage> wanted) const noexcept;
  [[nodiscard]] std::size_t pages() const noexcept;  // used and cached
};

}  // namespace tessera
