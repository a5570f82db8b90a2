// The pages of a step's sequences in numbers, without addresses: a plain value, which could be sent to another process. A KvView has the
// addresses of the same pages; PageAddresses (page_addresses.hpp) makes KvViews from the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "kv/page_id.hpp"

namespace tessera::detail {

// The slots to which recurrent layers write their states in a step (KvStateTargets). The numbers of the slots are in StepPages::ids.
struct StateSlots {
  std::uint64_t length = 0, first_page = 0, exact_from = 0;  // as in KvStateTargets
  std::size_t pages = 0, drafts = 0;  // sizes of the lists KvStateTargets::pages and drafts

  bool operator==(const StateSlots&) const noexcept = default;
};

// The pages of one sequence, in numbers.
struct SequencePages {
  static constexpr std::uint32_t kPaged = ~std::uint32_t{0};

  std::uint32_t layout = 0;       // number of the KvLayout: layouts of an engine are numbered as they are first used
  std::uint32_t cache = kPaged;   // number of a contiguous cache; kPaged: a paged cache. After a cache's end, its number is used again
  std::uint32_t groups = 0;       // number of the layout's groups
  std::uint64_t pages = 0;        // number of pages in each group
  bool writes_states = false;     // the step writes states of recurrent layers, to `slots`
  StateSlots slots = {};
  std::size_t first = 0, size = 0;  // the sequence's numbers are StepPages::ids [first, first + size)

  bool operator==(const SequencePages&) const noexcept = default;
};

struct StepPages {
  std::vector<SequencePages> sequences;
  // The numbers of all sequences, one sequence after another. For each sequence: the numbers of its pages [group][page], then the numbers
  // of the slots to which the step writes states of recurrent layers (first KvStateTargets::pages, then KvStateTargets::drafts). kNoPage:
  // there is no page. If the pages are from pools, a number counts within its pool, which has all pages of equal bytes. In a contiguous
  // cache a number counts within its group.
  std::vector<PageId> ids;

  [[nodiscard]] std::span<const PageId> ids_of(const SequencePages& sequence) const noexcept {
    return std::span(ids).subspan(sequence.first, sequence.size);
  }
  void clear() noexcept {
    sequences.clear();
    ids.clear();
  }
  bool operator==(const StepPages&) const noexcept = default;
};

// A page that was copied, because a sequence writes to it and others share it. `from` and `to` are numbers in the pool.
struct PageCopy {
  std::uint64_t page_bytes = 0;  // bytes of each page of the pool
  PageId from = 0, to = 0;

  bool operator==(const PageCopy&) const noexcept = default;
};

// Adds the cache's pages to `to`. `pools`: the pools of the cache's engine. May throw bad_alloc; then `to` is incomplete. Precondition: the
// cache is neither an empty handle nor suspended.
void describe_pages(const KvCache& cache, const KvPools& pools, StepPages& to);

// Makes the pools keep a list of the pages that they copy, for take_copies(). By default there is no list: only an executor of
// steps that has pages in a memory of its own, and so must repeat the copies (PageMemory::copy()), needs it.
void keep_copies(const KvPools& pools) noexcept;
// Returns the pages that were copied since the last call, in their order, in `out`, whose memory is reused.
void take_copies(const KvPools& pools, std::vector<PageCopy>& out) noexcept;

}  // namespace tessera::detail
