// The pages of paged KV caches. Pages of the same size in bytes form a pool. All pools of an engine share one byte budget and one prefix
// index.
//
// A page is in one of three states. Used: one or more sequences hold the page (their number is counted). Cached: no sequence holds the
// page, but the prefix index can still find it. Free: no sequence holds the page, and the index cannot find it.
//
// Memory is allocated on demand, in slabs of about kKvSlabBytes. If there is no memory for another slab, a cached page is evicted: the page
// whose last use is longest ago. If the file (KvPoolOptions::file) has a copy of an evicted page, the index can still find the page there.
// Cached and free pages are kept up to KvPoolOptions::keep bytes; trim() frees all of them at once.
//
// A request for pages of several groups succeeds completely, or fails and takes no page.
//
//   auto pools = tessera::KvPools::create({.budget = std::uint64_t{1} << 30});
//   auto cache = tessera::KvCache::paged(layout, {.capacity = 4096}, *pools);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/core/memory.hpp>

namespace tessera {

inline constexpr std::uint64_t kKvSlabBytes = std::uint64_t{2} << 20;

// The content of a free page until it is used again.
enum class FreedPages : std::int32_t {
  leave = 0,     // the old content of the page
  fill_nan = 1,  // NaN in every type, for tests: if code reads a free page, the logits become NaN and the mistake is seen
};

// A function that returns the hash of a sequence of bytes. `parent` is the hash of the sequence's beginning, `bytes` are the bytes after
// this beginning. Pages with equal hashes are also compared by their inputs, so a weak hash costs only time.
using PrefixHash = Hash128 (*)(const Hash128& parent, std::span<const std::byte> bytes) noexcept;

struct KvPoolOptions {
  Memory* memory = nullptr;                // nullptr: system_memory()
  std::shared_ptr<Memory> memory_owner = {};  // an owner of `memory`, kept alive as long as the pools
  std::uint64_t budget = 0;                // limit of bytes of pages; 0: only Memory limits them
  std::uint64_t keep = 0;                  // bytes of pages that are kept although no sequence uses them; at most the budget
  std::uint64_t max_slab_pages = ~0ull;    // limit of pages of one slab; an engine sets it to the pages of one full sequence in a group
  FreedPages freed = FreedPages::leave;
  // A file for pages that are not in memory: pages of suspended caches, and pages of the prefix index when memory is short. The file must
  // not exist. It is created with its whole size and then unlinked, so it has no name. Empty: no file.
  std::filesystem::path file = {};
  std::uint64_t file_bytes = 0;
  PrefixHash hash = nullptr;               // nullptr: XXH3-128. Tests pass a hash that collides
};

// Figures of the pools. Numbers of bytes are present values; all other numbers are counted from the pools' creation.
struct KvFigures {
  std::uint64_t held_bytes = 0;    // bytes taken from Memory: used, cached and free pages
  std::uint64_t used_bytes = 0;    // bytes of pages that sequences hold; a shared page counts once
  std::uint64_t cached_bytes = 0;  // bytes of pages that only the prefix index holds
  std::uint64_t free_bytes = 0;
  std::uint64_t hits = 0;          // prompts whose beginning was found
  std::uint64_t misses = 0;        // prompts of at least one page whose beginning was not found
  std::uint64_t tokens_saved = 0;  // tokens that were found and so did not have to be computed
  std::uint64_t evictions = 0;     // cached pages that were freed because memory was needed
  std::uint64_t copies = 0;        // shared pages copied because a sequence wrote to them
  std::uint64_t file_bytes = 0;    // bytes of the file that are in use now
  std::uint64_t pages_written = 0; // pages written to the file
  std::uint64_t pages_read = 0;    // pages read from the file
  std::uint64_t file_errors = 0;   // writes that failed; after the first failure, cached pages are no longer written
};

// A handle: copies refer to the same pools. Thread-safe. Caches made from pools keep the pools alive.
class KvPools {
 public:
  KvPools() noexcept = default;  // an empty handle (docs/headers.md)
  [[nodiscard]] static Result<KvPools> create(const KvPoolOptions& options) noexcept;

  [[nodiscard]] KvFigures figures() const noexcept;
  // Frees all memory that no sequence uses, and the prefix index's part of the file: the index forgets all cached pages. Waits for pages
  // that are being written.
  void trim() const noexcept;

  struct State;
  [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  explicit KvPools(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

// Returns the number of pages of `page_bytes` in a slab: the number that fits in kKvSlabBytes, but at most max_slab_pages and at most a
// sixteenth of the budget; at least one page.
[[nodiscard]] std::uint64_t kv_slab_pages(std::uint64_t page_bytes, const KvPoolOptions& options) noexcept;

}  // namespace tessera
