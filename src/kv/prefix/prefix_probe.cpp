#include "kv/prefix/prefix_probe.hpp"

#include <algorithm>
#include <mutex>

#include "kv/pages/pools_state.hpp"
#include "kv/prefix/prefix_search.hpp"

namespace tessera::detail {

PrefixProbe::PrefixProbe(const KvPools& pools, const KvLayout& layout, std::string identity)
    : pools_(pools.state()), identity_(std::move(identity)) {
  for (const KvGroup& group : layout.groups) windows_.push_back(group.window);
  const std::lock_guard lock(pools_->mutex);
  pooled_ = &pools_->pooled(layout);
}

KnownPrefix PrefixProbe::operator()(const KvInputs& inputs, std::uint64_t from) const {
  const std::lock_guard lock(pools_->mutex);
  const PrefixIndex& index = pools_->index;
  const FoundPages found = find_pages(index, index.root(identity_, *pooled_), *pooled_,
                                      {.identity = identity_, .inputs = inputs, .windows = windows_}, SequenceHas::nothing,
                                      Stored::too);
  KnownPrefix known{.tokens = found.pages * page_tokens()};
  for (std::size_t group = 0; group < windows_.size(); ++group) {
    for (std::uint64_t i = std::max(from, found.from[group]); i < found.pages; ++i) {
      const IndexedPage& page = found.nodes[i]->pages[group];
      if (page.id != kNoPage && page.pool->references(page.id) > 0) known.bytes_in_use += page.pool->page_bytes();
    }
  }
  return known;
}

}  // namespace tessera::detail
