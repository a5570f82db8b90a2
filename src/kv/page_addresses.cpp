#include "kv/page_addresses.hpp"

#include "core/error.hpp"
#include "kv/kv_storage.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {

// Gives every list its final size at the beginning, because no element may move in memory while views refer to it.
void PageAddresses::begin(const StepPages& of) {
  views_.clear();
  n_tables_ = n_targets_ = 0;
  std::size_t tables = 0, writers = 0;
  for (const SequencePages& sequence : of.sequences) {
    tables += sequence.groups;
    writers += sequence.writes_states ? 1 : 0;
  }
  views_.reserve(of.sequences.size());
  pages_.resize(of.ids.size());
  tables_.resize(tables);
  if (targets_.size() < writers) targets_.resize(writers);
  writers = 0;
  for (const SequencePages& sequence : of.sequences) {
    if (!sequence.writes_states) continue;
    targets_[writers].pages.resize(sequence.slots.pages);
    targets_[writers++].drafts.resize(sequence.slots.drafts);
  }
}

void PageAddresses::add_view(const SequencePages& sequence, const KvLayout& layout) noexcept {
  std::byte* const* next = pages_.data() + sequence.first;
  const auto table = tables_.begin() + static_cast<std::ptrdiff_t>(n_tables_);
  for (std::size_t group = 0; group < sequence.groups; ++group, next += sequence.pages) table[static_cast<std::ptrdiff_t>(group)] = next;
  n_tables_ += sequence.groups;
  KvView& view = views_.emplace_back(KvView{.layout = &layout, .pages = &*table});
  if (!sequence.writes_states) return;
  KvStateTargets& targets = targets_[n_targets_++];
  targets.length = sequence.slots.length;
  targets.first_page = sequence.slots.first_page;
  targets.exact_from = sequence.slots.exact_from;
  for (std::byte*& slot : targets.pages) slot = *next++;
  for (std::byte*& slot : targets.drafts) slot = *next++;
  view.targets = &targets;
}

Status CacheMemory::find(const StepPages& pages, PageAddresses& out) {
  out.begin(pages);
  KvPools::State& pools = *pools_.state();
  const std::lock_guard lock(pools.mutex);
  for (const SequencePages& sequence : pages.sequences) {
    if (sequence.layout >= pools.layouts.size()) {
      return make_error(ErrorCode::internal, "KV layout {} is unknown: there are {}", sequence.layout, pools.layouts.size());
    }
    const PooledLayout& pooled = *pools.layouts[sequence.layout];
    if (sequence.cache == SequencePages::kPaged) {
      const auto address = [&](std::size_t group, PageId id) -> std::byte* {
        const PagePool& pool = *pooled.pools[group];
        return id < pool.ids() ? pool.address(id) : nullptr;
      };
      if (out.add(pages, pooled.layout, address)) continue;
      return make_error(ErrorCode::internal, "a sequence has a KV page that no pool has");
    }
    const KvStorage* const cache = sequence.cache < pools.contiguous.size() ? pools.contiguous[sequence.cache] : nullptr;
    if (cache == nullptr) return make_error(ErrorCode::internal, "contiguous KV cache {} is unknown", sequence.cache);
    out.add({.layout = &cache->layout(), .pages = cache->tables(), .targets = cache->targets()});
  }
  return {};
}

}  // namespace tessera::detail
