#include "kv/prefix/prefix_search.hpp"

namespace tessera::detail {
namespace {

// Decides how many of the found nodes can be used: the largest number n for which every group has the pages that it needs. Which pages a
// group needs:
// - Recurrent layers: only the state after the last page.
// - A new sequence, a group with a window: the pages that the window of the first token after node n sees. One page before them is taken too,
//   if the index has it, so that the sequence can be shortened by a few tokens.
// - A new sequence, a group without a window: all pages.
// - A sequence that already has tokens: all pages, so that the sequence can be shortened to its old length.
void choose(FoundPages& found, const PrefixQuestion& question, const KvLayout& layout, SequenceHas has, Stored stored) {
  const std::size_t groups = found.from.size();
  const std::uint64_t page_tokens = layout.page_tokens;
  const auto first_needed = [&](std::size_t group, std::uint64_t n) -> std::uint64_t {
    if (layout.groups[group].is_recurrent()) return n - 1;
    const std::uint64_t window = question.windows[group], next = n * page_tokens;
    return has == SequenceHas::nothing && window != 0 && next >= window ? (next - window + 1) / page_tokens : 0;
  };
  std::vector<std::uint64_t> present(groups, 0);  // [group]: number of consecutive nodes, ending with the n-th, that have the group's page
  for (std::uint64_t n = 1; n <= found.nodes.size(); ++n) {
    bool enough = true;
    for (std::size_t group = 0; group < groups; ++group) {
      const IndexedPage& page = found.nodes[n - 1]->pages[group];
      const bool here = page.id != kNoPage || (stored == Stored::too && page.stored != nullptr);
      present[group] = here ? present[group] + 1 : 0;
      enough = enough && n - present[group] <= first_needed(group, n);
    }
    if (!enough) continue;
    found.pages = n;
    for (std::size_t group = 0; group < groups; ++group) {
      const std::uint64_t needed = first_needed(group, n);
      found.from[group] = needed > 0 && n - present[group] < needed ? needed - 1 : needed;
    }
  }
}

}  // namespace

FoundPages find_pages(const PrefixIndex& index, PrefixNode* after, const PooledLayout& layout,
                      const PrefixQuestion& question, SequenceHas has, Stored stored) {
  const std::size_t page_tokens = layout.layout.page_tokens;
  FoundPages found{.nodes = {}, .pages = 0, .from = std::vector<std::uint64_t>(layout.pools.size(), 0)};
  if (after == nullptr) return found;
  found.nodes.reserve(question.inputs.size() / page_tokens);
  for (KvInputs rest = question.inputs; rest.size() >= page_tokens;) {
    const KvInputs page = rest.first(page_tokens);
    after = index.child(*after, page);
    if (after == nullptr) break;
    found.nodes.push_back(after);
    rest = rest.behind(page);
  }
  choose(found, question, layout.layout, has, stored);
  return found;
}

}  // namespace tessera::detail
