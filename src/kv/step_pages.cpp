#include "kv/step_pages.hpp"

#include <utility>

#include "kv/kv_cache_state.hpp"
#include "kv/kv_storage.hpp"
#include "kv/pages/pools_state.hpp"

namespace tessera::detail {

void KvStorage::describe(KvPools::State& pools, StepPages& to) {
  const Numbers numbered = numbers(pools);
  SequencePages sequence{.layout = numbered.layout,
                         .cache = numbered.cache,
                         .groups = static_cast<std::uint32_t>(groups()),
                         .pages = size(),
                         .writes_states = targets_.has_value(),
                         .first = to.ids.size()};
  for (std::size_t group = 0; group < groups(); ++group) append_ids(group, to.ids);
  if (targets_) {
    sequence.slots = {.length = targets_->length,
                      .first_page = targets_->first_page,
                      .exact_from = targets_->exact_from,
                      .pages = page_slots_.size(),
                      .drafts = draft_slots_.size()};
    for (const StateSlot& slot : page_slots_) to.ids.push_back(slot.id);
    for (const StateSlot& slot : draft_slots_) to.ids.push_back(slot.id);
  }
  sequence.size = to.ids.size() - sequence.first;
  to.sequences.push_back(sequence);
}

void describe_pages(const KvCache& cache, const KvPools& pools, StepPages& to) { storage_of(cache)->describe(*pools.state(), to); }

void keep_copies(const KvPools& pools) noexcept {
  const std::lock_guard lock(pools.state()->mutex);
  pools.state()->keeps_copies = true;
}

void take_copies(const KvPools& pools, std::vector<PageCopy>& out) noexcept {
  out.clear();
  KvPools::State& state = *pools.state();
  const std::lock_guard lock(state.mutex);
  if (!state.copies.empty()) std::swap(out, state.copies);
}

}  // namespace tessera::detail
