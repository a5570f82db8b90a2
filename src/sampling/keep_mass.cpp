// Candidates::keep_mass(): finds the smallest set of best candidates whose probabilities sum to at least p (for top-p), without sorting all
// candidates. The *cut* is the lowest logit in this set. Divides the candidates into bins by their logits, adds up each bin's probabilities
// from the best bin down, and searches only the bin in which the sum reaches p. If there are many candidates, first estimates from a sample
// two logits between which the cut lies. Then only candidates between these two logits are put into bins; of the better candidates only the
// sum is needed.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <tessera/extend/sampling/candidates.hpp>

#include "core/math.hpp"
#include "sampling/loops.hpp"
#include "sampling/order.hpp"

namespace tessera::sampling {
namespace {

constexpr std::size_t kBins = 1024;
constexpr std::size_t kFew = 256;    // candidates that are sorted rather than binned
constexpr float kDeepest = 128.0f;   // exp(-128) adds nothing to a sum, so logits further below the best share a bin
constexpr std::size_t kBlock = 128;  // candidates whose bins are computed together

// Bins of logits, of equal width, numbered from the lowest logit to the highest.
class Bins {
 public:
  explicit Bins(const loops::Range& range) noexcept : low_(range.low), high_(range.high) {
    if (high_ - low_ > kDeepest) low_ = high_ - kDeepest;
    scale_ = static_cast<float>(kBins) / (high_ - low_);
  }
  // Returns whether the bins can tell the logits apart: false if all logits are equal, or some are infinite.
  [[nodiscard]] bool divide() const noexcept { return high_ - low_ > 0.0f && scale_ < 1e30f; }

  void of(const float* logits, std::size_t n, std::int32_t* bins) const noexcept {
    for (std::size_t i = 0; i < n; ++i) {
      float place = (logits[i] - low_) * scale_;
      place = place > 0.0f ? place : 0.0f;
      place = place < static_cast<float>(kBins - 1) ? place : static_cast<float>(kBins - 1);
      bins[i] = static_cast<std::int32_t>(place);
    }
  }

  // Returns the lowest logit of a bin, up to rounding.
  [[nodiscard]] float low_edge(std::size_t bin) const noexcept { return low_ + static_cast<float>(bin) / scale_; }

 private:
  float low_, high_, scale_;
};

// Two logits, `low` and `high`, between which the cut most likely lies. guess_bracket() estimates them from a sample of kSample candidates
// at equal distances in the list. The cut is the logit at which the weights, added up from the highest logit down, reach p * (the sum of
// all weights). Exception: if a few candidates have nearly all the weight, the sample tells too little. Then `high` is infinity, and `low`
// is not an estimate but a certain bound: a candidate below `low` weighs less than (1 - p) / n of the sum. So all candidates below `low`
// together weigh less than 1 - p of the sum, and the cut is not below `low`.
constexpr std::size_t kSample = 4096;
struct Bracket {
  float low = 0.0f, high = std::numeric_limits<float>::infinity();
};

Bracket guess_bracket(const float* logits, const float* weights, std::size_t n, double p, double sum) noexcept {
  std::array<float, kSample> sampled;
  std::array<std::int32_t, kSample> bins;
  const std::size_t count = std::min(n, kSample), distance = n / count;
  double first = 0.0, second = 0.0;  // moments of the weights
  std::size_t heaviest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto weight = static_cast<double>(weights[i * distance]);
    sampled[i] = logits[i * distance];
    first += weight;
    second += weight * weight;
    heaviest = weight > static_cast<double>(weights[heaviest * distance]) ? i : heaviest;
  }
  // Weights are exp(logit - the best logit).
  const double share = (1.0 - p) * sum / static_cast<double>(n) / static_cast<double>(weights[heaviest * distance]);
  const Bracket certain{.low = logits[heaviest * distance] + static_cast<float>(math::log(share)) - 0.01f};
  // The effective size of the sample: the number of equal weights that would give an estimate of the same quality.
  const double alike = first > 0.0 ? first * first / second : 0.0;
  if (alike < static_cast<double>(count) / 16.0) return certain;
  const double margin = 3.0 * std::sqrt(p * (1.0 - p) / alike);
  const Bins bins_of(loops::range(sampled.data(), count));
  if (!bins_of.divide()) return certain;
  bins_of.of(sampled.data(), count, bins.data());
  std::array<double, kBins> masses{};
  for (std::size_t i = 0; i < count; ++i) masses[static_cast<std::size_t>(bins[i])] += static_cast<double>(weights[i * distance]);
  Bracket bracket{.low = certain.low};
  double above = 0.0;
  for (std::size_t bin = kBins; bin-- > 0;) {
    above += masses[bin];
    if (above < (p - margin) * first) bracket.high = bins_of.low_edge(bin);
    if (above < (p + margin) * first) continue;
    bracket.low = std::max(bracket.low, bins_of.low_edge(bin));
    break;
  }
  return bracket;
}

// The list of the indices of all candidates, without memory: entry j is j. find_edge() passes Everyone to narrow() the first time, and a
// stored list of indices later.
struct Everyone {
  std::size_t operator[](std::size_t j) const noexcept { return j; }
};

}  // namespace

// Narrows a search: reduces a list of candidates to the ones among which the cut lies. `count` is the length of the list, at[j] is the
// index of its j-th candidate, and mass(i) is the weight or the probability of the candidate with index i. Puts the candidates into bins by
// their logits, and finds the bin in which the sum of masses, added up from the highest bin down, reaches `target`. Writes the indices of
// this bin's candidates to `keys`, adds the masses of all higher bins to `above`, and returns the length of the new list. If bins cannot
// tell the candidates apart (equal logits), writes nothing and returns `count`.
template <class Mass, class At>
std::size_t Candidates::narrow(double target, const Mass& mass, const At& at, std::size_t count, double& above) noexcept {
  const auto list = workspace_.keys;
  std::array<float, kBlock> logits;
  std::array<std::int32_t, kBlock> bins;
  const auto for_each_block = [&](const auto& use) {  // calls use(first, number) with the block's logits in `logits`
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
      const std::size_t n = std::min(kBlock, count - begin);
      for (std::size_t j = 0; j < n; ++j) logits[j] = workspace_.logits[at[begin + j]];
      use(begin, n);
    }
  };
  loops::Range range{std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for_each_block([&](std::size_t, std::size_t n) {
    const loops::Range here = loops::range(logits.data(), n);
    range = {std::min(range.low, here.low), std::max(range.high, here.high)};
  });
  const Bins bins_of(range);
  if (!bins_of.divide()) return count;

  // Each bin has two sums, and the candidates are added to them in turn. So if many consecutive candidates are in the same bin, an addition
  // need not wait for the one just before it.
  std::array<std::array<double, 2>, kBins> masses{};
  for_each_block([&](std::size_t begin, std::size_t n) {
    bins_of.of(logits.data(), n, bins.data());
    for (std::size_t j = 0; j < n; ++j) masses[static_cast<std::size_t>(bins[j])][j % 2] += mass(at[begin + j]);
  });
  std::size_t bin = kBins - 1;
  for (; bin > 0; --bin) {
    const double here = masses[bin][0] + masses[bin][1];
    if (above + here >= target) break;
    above += here;
  }
  std::size_t found = 0;
  for_each_block([&](std::size_t begin, std::size_t n) {
    bins_of.of(logits.data(), n, bins.data());
    std::uint32_t any = 0;
    for (std::size_t j = 0; j < n; ++j) any |= bins[j] == static_cast<std::int32_t>(bin) ? 1u : 0u;
    if (any == 0) return;
    for (std::size_t j = 0; j < n; ++j) {
      if (bins[j] == static_cast<std::int32_t>(bin)) list[found++] = at[begin + j];  // `at` may be `list` itself, because found <= begin + j
    }
  });
  return found;
}

// Finds the smallest set of best candidates whose masses add up to at least `target`; mass(i) is the weight or the probability of candidate
// i. Returns the key of the set's worst candidate. Edge::certain is true if the set stays the same when each sum is wrong by up to `doubt`.
template <class Mass>
Candidates::Edge Candidates::find_edge(double target, double doubt, const Mass& mass) noexcept {
  const auto list = workspace_.keys;
  double above = 0.0;
  std::size_t count = size_;
  bool listed = false;
  if (weighed_ && size_ >= 4 * kSample && doubt > 0.0) {
    const Bracket bracket = guess_bracket(workspace_.logits.data(), workspace_.weights.data(), size_, target / sum_, sum_);
    const loops::Split split = loops::split(workspace_.logits.data(), workspace_.weights.data(), size_, bracket.low, bracket.high, list.data());
    double inside = 0.0;
    for (std::size_t i = 0; i < split.count; ++i) inside += mass(list[i]);
    if (split.above < target - doubt && split.above + inside > target + doubt) {
      above = split.above;
      count = split.count;
      listed = true;
    }
  }
  while (count > kFew) {
    const std::size_t before = count;
    count = listed ? narrow(target, mass, list, count, above) : narrow(target, mass, Everyone{}, count, above);
    if (count == before) break;
    listed = true;
  }
  const auto edge = list.first(count);
  for (std::size_t i = 0; i < count && !listed; ++i) edge[i] = i;
  const auto better = [&](std::uint64_t a, std::uint64_t b) { return key(a) > key(b); };
  if (!std::is_sorted(edge.begin(), edge.end(), better)) std::sort(edge.begin(), edge.end(), better);

  bool certain = true;
  std::size_t kept = 0;
  double reached = above;
  while (kept < count && reached < target) {
    certain = certain && reached < target - doubt;
    reached += mass(edge[kept++]);
  }
  return {key(edge[kept - 1]), certain && reached >= target + doubt};
}

void Candidates::keep_mass(double p, std::size_t min_keep) noexcept {
  settle();
  if (size_ == 0 || !(sum_ > 0.0)) return;
  // The set that is kept is defined by the probabilities, each rounded to float (relative error at most 2^-24). Adding up weights is
  // faster, because no division is needed. So weights are added up first. If the rounding could change the set, the probabilities are added
  // up in a second search.
  const auto weights = workspace_.weights.first(size_);
  const double target = p * sum_;
  Edge edge = find_edge(target, target * 0x1.1p-24, [&](std::size_t i) { return static_cast<double>(weights[i]); });
  if (!edge.certain) edge = find_edge(p, 0.0, [&](std::size_t i) { return static_cast<double>(probability(i)); });

  if (min_keep > 1) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) kept += key(i) >= edge.threshold ? 1 : 0;
    if (kept < min_keep) return keep_best(min_keep);
  }
  if (!weighed_) return keep_keys_from(edge.threshold);  // the values are not logits: typical-p ranks candidates by other values
  const std::size_t kept = loops::drop_weights(workspace_.logits.data(), workspace_.tokens.data(), size_,
                                               static_cast<std::uint32_t>(edge.threshold >> 32),
                                               static_cast<std::uint32_t>(edge.threshold), weights.data());
  put_off_ = kept < size_;
  put_off_threshold_ = edge.threshold;
  size_ = kept;
}

}  // namespace tessera::sampling
