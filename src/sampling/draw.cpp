#include "sampling/draw.hpp"

#include <algorithm>

#include "sampling/loops.hpp"

namespace tessera::sampling {
namespace {

// Draws one of n candidates, and returns its index. probability(i) returns the rounded probability of candidate i.
template <class Probability>
std::size_t draw_rounded(std::size_t n, double uniform, const Probability& probability) noexcept {
  double total = 0.0;
  for (std::size_t i = 0; i < n; ++i) total += static_cast<double>(probability(i));
  const double target = uniform * total;
  double reached = 0.0;
  std::size_t last = 0;  // the result if `target` rounds up to `total`
  for (std::size_t i = 0; i < n; ++i) {
    if (!(probability(i) > 0.0f)) continue;
    last = i;
    reached += static_cast<double>(probability(i));
    if (reached > target) break;
  }
  return last;
}

}  // namespace

std::size_t draw(std::span<const Candidate> distribution, double uniform) noexcept {
  return draw_rounded(distribution.size(), uniform, [&](std::size_t i) { return distribution[i].probability; });
}

// Finds the token by adding up weights, which is faster than computing each candidate's probability. The result is defined by the
// probabilities, which are rounded to float. If this rounding could lead to another token, calls draw_rounded(), which adds up the rounded
// probabilities.
Token Candidates::draw(double uniform) const noexcept {
  constexpr std::size_t kBlock = 256;
  const auto weights = workspace_.weights.first(rows_);
  const double target = uniform * sum_;
  // draw_rounded() compares two sums of probabilities. Each differs from the exact sum by at most one part in 2^24, because each
  // probability is rounded to float. So if an exact sum differs from `target` by more than 2 parts in 2^24, the rounding cannot change the
  // result.
  const double doubt = target * 0x1.1p-23;
  double reached = 0.0;
  for (std::size_t begin = 0; begin < weights.size(); begin += kBlock) {
    const auto block = weights.subspan(begin, std::min(kBlock, weights.size() - begin));
    const double sum = loops::total(block.data(), block.size());
    if (reached + sum <= target) {
      reached += sum;
      continue;
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      const double before = reached;
      reached += static_cast<double>(block[i]);
      if (reached <= target) continue;
      if (reached > target + doubt && before < target - doubt) return workspace_.tokens[begin + i];
      break;
    }
    break;
  }
  settle();
  return workspace_.tokens[draw_rounded(size_, uniform, [&](std::size_t i) { return probability(i); })];
}

}  // namespace tessera::sampling
