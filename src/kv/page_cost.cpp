#include <tessera/unstable/kv/page_cost.hpp>

#include <algorithm>

namespace tessera {
namespace {

// Returns how many states a sequence of `pages` pages without drafts may have at once. Between steps the sequence has the live state and the
// checkpoints. During a step it also has the next live state, the next checkpoints, and up to `offered` states that are kept for other
// sequences. (Not counted here: each draft adds one state until the draft is accepted or rejected.)
std::uint64_t most_states(std::uint64_t pages, std::uint64_t checkpoints, std::uint64_t offered) noexcept {
  const std::uint64_t own = std::min(pages, checkpoints + 1);
  // Limit: at most one state for each page, and the live state that the step replaces.
  return std::min(own + std::min(pages, own + offered), pages + 1);
}

}  // namespace

PageCost PageCost::of(const KvLayout& layout, std::uint32_t checkpoints, bool offers) {
  PageCost cost{.page_tokens = layout.page_tokens, .groups = {}, .checkpoints = checkpoints, .state_pages = offers ? layout.state_pages : 0};
  for (const KvGroup& group : layout.groups) cost.groups.push_back({.page_bytes = group.page_bytes, .window = group.window, .kind = group.kind});
  return cost;
}

std::uint64_t PageCost::pages(const Group& group, std::uint64_t tokens) const noexcept {
  const std::uint64_t all = pages(tokens);
  if (group.kind == KvGroupKind::recurrent) return most_states(all, checkpoints, 0);
  return group.window == 0 ? all : std::min(all, pages(group.window - 1) + 2);
}

std::uint64_t PageCost::pages_at_once(const Group& group, std::uint64_t tokens) const noexcept {
  const std::uint64_t all = pages(tokens);
  if (group.kind != KvGroupKind::recurrent) return all;
  // `offered` is the most states that the step keeps only for other sequences to find: one for every `state_pages` pages, at most
  // kMostOffered. Only `between` pages count: those that have no checkpoint before the step, and none after the step. (The states of
  // checkpoints are kept in any case.)
  const std::uint64_t between = all - std::min(all, 2 * std::uint64_t{checkpoints});
  const std::uint64_t offered = state_pages != 0 ? std::min<std::uint64_t>(kMostOffered, (between + state_pages - 1) / state_pages) : 0;
  return most_states(all, checkpoints, offered);
}

std::uint64_t PageCost::bytes(std::uint64_t tokens) const noexcept {
  std::uint64_t sum = 0;
  for (const Group& group : groups) sum += pages(group, tokens) * group.page_bytes;
  return sum;
}

std::uint64_t PageCost::window_bytes(std::uint64_t tokens) const noexcept {
  std::uint64_t sum = 0;
  for (const Group& group : groups) sum += group.window != 0 ? pages(group, tokens) * group.page_bytes : 0;
  return sum;
}

std::uint64_t PageCost::next_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const Group& group : groups) sum += group.page_bytes;
  return sum;
}

PageCost::Growth PageCost::growth(std::uint64_t length, std::uint64_t end, std::uint64_t copies) const noexcept {
  const std::uint64_t taken = pages(end) - pages(length) + copies, full = end / page_tokens - length / page_tokens;
  const std::uint64_t states = end > length ? 1 + std::min<std::uint64_t>(full, std::uint64_t{checkpoints} + kMostOffered) : 0;
  Growth sum{.pages = taken, .bytes = 0};
  for (const Group& group : groups) {
    const bool is_recurrent = group.kind == KvGroupKind::recurrent;
    if (is_recurrent) sum.pages += states;
    sum.bytes += (is_recurrent ? states : taken) * group.page_bytes;
  }
  return sum;
}

}  // namespace tessera
