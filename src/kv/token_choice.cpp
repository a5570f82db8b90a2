#include "kv/token_choice.hpp"

#include <algorithm>
#include <deque>

namespace tessera::kv {
namespace {

// Returns for each token i the largest of votes[i - reach] to votes[i + reach] (the maximum of a sliding window, in linear time). `places`
// has the indices of the votes that may still be the largest for token i or a later token. The indices ascend and their votes descend, so
// the largest vote is at the front.
std::vector<std::uint64_t> largest_within(std::span<const std::uint64_t> votes, std::size_t reach) {
  std::vector<std::uint64_t> largest(votes.size());
  std::deque<std::size_t> places;
  for (std::size_t i = 0, next = 0; i < votes.size(); ++i) {
    for (; next < votes.size() && next <= i + reach; ++next) {
      while (!places.empty() && votes[places.back()] <= votes[next]) places.pop_back();
      places.push_back(next);
    }
    if (places.front() + reach < i) places.pop_front();
    largest[i] = votes[places.front()];
  }
  return largest;
}

}  // namespace

std::vector<TokenRun> tokens_to_drop(std::uint64_t length, std::span<const std::uint64_t> votes, Keep keep) {
  if (keep.tokens >= length) return {};
  const std::uint64_t sinks = std::min(keep.sinks, keep.tokens);
  if (votes.empty()) return {{sinks, length - (keep.tokens - sinks)}};
  const std::uint64_t recent = std::min(keep.recent, keep.tokens - sinks);
  const std::size_t stay = static_cast<std::size_t>(keep.tokens - sinks - recent);
  const std::span<const std::uint64_t> middle = votes.subspan(sinks, static_cast<std::size_t>(length - sinks - recent));
  const std::vector<std::uint64_t> pooled = largest_within(middle, static_cast<std::size_t>(std::min<std::uint64_t>(keep.pooled, length)));

  std::vector<std::uint64_t> order = pooled;  // a copy that is partly sorted, to find the smallest vote with which a token still stays
  std::vector<bool> stays(middle.size(), false);
  if (stay > 0) {
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(stay - 1), std::ranges::greater());
    const std::uint64_t least = order[stay - 1];
    std::size_t left = stay - static_cast<std::size_t>(std::ranges::count_if(pooled, [&](std::uint64_t n) { return n > least; }));
    for (std::size_t i = middle.size(); i-- > 0;) {
      if (pooled[i] > least) stays[i] = true;
      else if (pooled[i] == least && left > 0) stays[i] = true, --left;
    }
  }
  std::vector<TokenRun> runs;
  for (std::size_t i = 0; i < stays.size(); ++i) {
    if (stays[i]) continue;
    if (!runs.empty() && runs.back().last == sinks + i) ++runs.back().last;
    else runs.push_back({sinks + i, sinks + i + 1});
  }
  return runs;
}

}  // namespace tessera::kv
