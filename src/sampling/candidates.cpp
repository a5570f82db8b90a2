#include <tessera/sampling/candidates.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>

#include "support/math_inline.hpp"

namespace tessera::sampling {
namespace {

// A number that orders candidates: higher is better. Logits as integers that compare alike (the two zeros alike too,
// and NaN above all, so that no order is ever undefined), then the lower token id.
std::uint64_t key(const Candidate& candidate) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(candidate.logit + 0.0f);
  const std::uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return (std::uint64_t{ordered} << 32) | ~static_cast<std::uint32_t>(candidate.token);
}

bool better(const Candidate& a, const Candidate& b) noexcept { return key(a) > key(b); }

// Buckets of candidates by the leading bits of their keys: a histogram finds the bucket where a selection ends, and
// only that bucket is searched.
constexpr int kShift = 52;
constexpr std::size_t kBuckets = 4096;

}  // namespace

const Candidate& Candidates::best() const noexcept {
  std::size_t best = 0;
  std::uint64_t best_key = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const std::uint64_t k = key(workspace_.items[i]);
    best = k > best_key ? i : best;
    best_key = std::max(best_key, k);
  }
  return workspace_.items[best];
}

// The n-th highest key, 1 <= n <= size.
std::uint64_t Candidates::nth_key(std::size_t n) noexcept {
  std::array<std::uint32_t, kBuckets> histogram{};
  const auto keys = workspace_.keys.first(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    keys[i] = key(workspace_.items[i]);
    ++histogram[keys[i] >> kShift];
  }
  std::size_t bucket = histogram.size() - 1;
  while (histogram[bucket] < n) n -= histogram[bucket--];
  const auto end = std::remove_if(keys.begin(), keys.end(), [&](std::uint64_t k) { return k >> kShift != bucket; });
  const auto nth = keys.begin() + static_cast<std::ptrdiff_t>(n - 1);
  std::nth_element(keys.begin(), nth, end, std::greater<>());
  return *nth;
}

void Candidates::keep_best(std::size_t n) noexcept {
  if (n >= size_) return;
  if (n == 0) {
    size_ = 0;
    return;
  }
  const std::uint64_t threshold = n == 1 ? key(best()) : nth_key(n);
  remove_if([&](const Candidate& candidate) { return key(candidate) < threshold; });
  keep(n);  // more only where a stage of the user's repeated a token
}

void Candidates::keep_mass(double p, std::size_t min_keep) noexcept {
  std::array<double, kBuckets> mass{};
  for (const Candidate& candidate : view()) {
    mass[key(candidate) >> kShift] += static_cast<double>(candidate.probability);
  }
  std::size_t bucket = kBuckets - 1;
  double reached = 0.0;
  while (bucket > 0 && reached + mass[bucket] < p) reached += mass[bucket--];

  std::size_t better_ones = 0;  // in buckets above: all kept
  std::size_t count = 0;
  for (const Candidate& candidate : view()) {
    const std::uint64_t at = key(candidate) >> kShift;
    better_ones += at > bucket ? 1 : 0;
    if (at == bucket) workspace_.spare[count++] = candidate;
  }
  const auto edge = workspace_.spare.first(count);
  std::sort(edge.begin(), edge.end(), better);
  std::size_t kept = 0;
  while (kept < count && reached < p) reached += static_cast<double>(edge[kept++].probability);
  const std::size_t n = std::max(better_ones + kept, std::size_t{1});
  if (n < min_keep) return keep_best(min_keep);
  if (kept == 0) return keep_best(n);
  const std::uint64_t threshold = key(edge[kept - 1]);
  remove_if([&](const Candidate& candidate) { return key(candidate) < threshold; });
}

void Candidates::sort_best(std::size_t n) noexcept {
  const auto items = workspace_.items.first(size_);
  if (n == 0) return;
  if (n >= size_) {
    std::sort(items.begin(), items.end(), better);
    return;
  }
  const std::uint64_t threshold = nth_key(n);
  std::size_t best_count = 0;
  std::size_t rest = size_;
  for (std::size_t i = size_; i-- > 0;) {  // from the end: the others move back, in their order
    if (key(items[i]) >= threshold) {
      workspace_.spare[best_count++] = items[i];
    } else {
      items[--rest] = items[i];
    }
  }
  const auto best = workspace_.spare.first(best_count);
  std::sort(best.begin(), best.end(), better);
  std::copy(best.begin(), best.end(), items.begin());
}

bool Candidates::softmax() noexcept {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t kBlock = 256;
  const auto items = workspace_.items.first(size_);
  float top = -kInfinity;
  for (const Candidate& candidate : items) top = candidate.logit > top ? candidate.logit : top;
  if (!(top > -kInfinity)) return false;

  std::array<double, 4> sums{};
  std::array<float, kBlock> block;
  for (std::size_t begin = 0; begin < size_; begin += kBlock) {
    const std::size_t count = std::min(kBlock, size_ - begin);
    if (top == kInfinity) {
      for (std::size_t i = 0; i < count; ++i) {
        const float logit = items[begin + i].logit;
        block[i] = logit != logit ? logit : logit == kInfinity ? 1.0f : 0.0f;
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) block[i] = items[begin + i].logit - top;
      for (std::size_t i = 0; i < count; ++i) block[i] = math::inlined::exp(block[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      items[begin + i].probability = block[i];
      sums[i % 4] += static_cast<double>(block[i]);
    }
  }
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (!(sum > 0.0)) return false;
  for (Candidate& candidate : items) {
    candidate.probability = static_cast<float>(static_cast<double>(candidate.probability) / sum);
  }
  return true;
}

}  // namespace tessera::sampling
