// The pages of paged KV caches. Pages of equal bytes are a pool; all pools of an engine share one byte budget and one
// prefix index.
//
// A page is free, used (by one sequence or more, which are counted), or cached: no sequence uses it, but the prefix
// index can still find it. Memory is taken in slabs of about kKvSlabBytes, on demand. When there is no room for another
// slab, the cached page that was used longest ago is evicted: to the file, if there is one and it has been written
// there by then. Pages that nobody uses stay, for what comes next, as long as all of them are within `keep` bytes;
// trim() gives them back at once.
//
// A request for pages of several groups is filled as a whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include <tessera/core/hash.hpp>
#include <tessera/core/memory.hpp>
#include <tessera/core/result.hpp>

namespace tessera {

inline constexpr std::uint64_t kKvSlabBytes = std::uint64_t{2} << 20;

// What a page that became free holds until it is used again.
enum class FreedPages : std::int32_t {
  leave = 0,     // what it held
  fill_nan = 1,  // NaN in every type: a read of it spoils the logits, and the mistake is seen
};

// Hashes `bytes` after `parent`. Equality is always confirmed on the tokens themselves, so a bad one costs time alone.
using PrefixHash = Hash128 (*)(const Hash128& parent, std::span<const std::byte> bytes) noexcept;

struct KvPoolOptions {
  Memory* memory = nullptr;                // nullptr: system_memory()
  std::shared_ptr<Memory> memory_owner = {};  // kept alive as long as the pools, if `memory` is nobody else's
  std::uint64_t budget = 0;                // bytes of pages at most; 0: as many as Memory gives
  std::uint64_t keep = 0;                  // bytes of pages kept although no sequence uses them; cut to the budget
  std::uint64_t max_slab_pages = ~0ull;    // pages of one slab at most: what a group of one full sequence needs
  FreedPages freed = FreedPages::leave;
  // A file for pages that are not in memory: of suspended caches, and of the prefix index when memory is short. Made
  // anew, of this size at once, and without a name from then on. Empty: none.
  std::filesystem::path file = {};
  std::uint64_t file_bytes = 0;
  PrefixHash hash = nullptr;               // nullptr: XXH3-128; a test gives one that collides
};

// Counted since the pools were made; bytes are as they are now.
struct KvFigures {
  std::uint64_t held_bytes = 0;    // taken from Memory: used, cached and free pages
  std::uint64_t used_bytes = 0;    // pages that sequences use, a shared one once
  std::uint64_t cached_bytes = 0;  // pages that the prefix index alone holds
  std::uint64_t free_bytes = 0;
  std::uint64_t hits = 0;          // prompts of which a beginning was found
  std::uint64_t misses = 0;        // prompts of a page or more of which nothing was found
  std::uint64_t tokens_saved = 0;  // found, and so not computed
  std::uint64_t evictions = 0;     // cached pages given up for want of room
  std::uint64_t copies = 0;        // shared pages copied because a sequence wrote to them
  std::uint64_t file_bytes = 0;    // of the file, taken by pages now
  std::uint64_t pages_written = 0; // to the file
  std::uint64_t pages_read = 0;    // from it
  std::uint64_t file_errors = 0;   // writes that failed; after one, cached pages are not written any more
};

// A handle: copies are the same pools. Thread-safe; caches made from it keep it alive.
class KvPools {
 public:
  KvPools() noexcept = default;  // an empty handle (docs/headers.md)
  [[nodiscard]] static Result<KvPools> create(const KvPoolOptions& options) noexcept;

  [[nodiscard]] KvFigures figures() const noexcept;
  // Gives back all memory that no sequence uses, and the prefix index's part of the file: it forgets everything that is
  // not in use. Waits for pages that are being written.
  void trim() const noexcept;

  struct State;
  [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  explicit KvPools(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;
};

// Pages of `page_bytes` in a slab: as many as kKvSlabBytes hold, at most max_slab_pages, and at most a sixteenth of the
// budget's (one, if that is none).
[[nodiscard]] std::uint64_t kv_slab_pages(std::uint64_t page_bytes, const KvPoolOptions& options) noexcept;

}  // namespace tessera
