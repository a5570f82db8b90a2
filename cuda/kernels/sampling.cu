// Draws tokens: one block draws one token. The kernel goes over all logits several times. It keeps no list of candidates: at each token it
// computes from a few numbers (Cuts) whether the sampler's steps so far have removed the token. Sums are of integers, so the result depends
// neither on the order of the threads nor on their number.
#include "cuda/kernels/sampling.hpp"

#include "cuda/kernels/device.hpp"

namespace tessera::cuda {
namespace {

struct Shared {
  std::uint64_t histogram[kDigits];  // [value of a digit]: sum of the weights of the candidates whose key has this value
  std::uint64_t warps[kWarp];
  Cuts cuts;
};

struct Row {
  const float* logits;  // [vocab]
  std::uint32_t vocab;
};

TESSERA_DEVICE std::uint64_t block_max(std::uint64_t value, std::uint64_t* warps) {
  const auto larger = [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; };
  for (int distance = 16; distance > 0; distance /= 2) value = larger(value, shuffle_xor(value, distance));
  if (lane_id() == 0) warps[warp_id()] = value;
  sync_block();
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) value = larger(value, warps[warp]);
  sync_block();
  return value;
}

// Calls fn(token, logit) for the tokens first, first + step, ... below `end` that the cuts have left. Loads several logits at once.
template <class Fn>
TESSERA_DEVICE void for_each_left(const Row& row, const Cuts& cuts, std::uint32_t first, std::uint32_t end,
                                  std::uint32_t step, Fn&& fn) {
  constexpr std::uint32_t kAtOnce = 4;
  for (; first < end; first += kAtOnce * step) {
    float logits[kAtOnce];
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::uint32_t token = first + i * step;
      logits[i] = token < end ? row.logits[token] : -kInfinity;
    }
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      if (keeps(cuts, first + i * step, logits[i])) fn(first + i * step, logits[i]);
    }
  }
}

struct Found {
  std::uint32_t index;   // index of the item; n: the sum of all weights does not pass the target
  std::uint64_t weight;  // weight of item `index`
  std::uint64_t rest;    // the target less the weights before `index`; less than `weight`
};

// Finds an item by its running sum, as a draw needs it: returns the first of n items at which the sum of the weights up to this item
// exceeds target_of(total). sum(first, end) returns this lane's part of the sum over items [first, end). Each warp sums one piece of the
// items; the piece in which the running sum passes the target is divided again, until it is one item.
template <class Sum, class Target>
TESSERA_DEVICE Found find_first(std::uint64_t* warps, std::uint32_t n, Sum&& sum, Target&& target_of) {
  const std::uint32_t pieces = blockDim.x / kWarp;
  std::uint64_t target = 0;
  for (std::uint32_t begin = 0, end = n;;) {
    const std::uint32_t piece = (end - begin + pieces - 1) / pieces;
    const std::uint32_t before = warp_id() * piece;
    const std::uint32_t first = before < end - begin ? begin + before : end;
    std::uint64_t mine = sum(first, piece < end - first ? first + piece : end);
    for (int distance = 16; distance > 0; distance /= 2) mine += shuffle_xor(mine, distance);
    if (lane_id() == 0) warps[warp_id()] = mine;
    sync_block();
    if (end - begin == n) {
      std::uint64_t total = 0;
      for (std::uint32_t i = 0; i < pieces; ++i) total += warps[i];
      target = target_of(total);
      if (target >= total) {
        sync_block();
        return {n, 0, 0};
      }
    }
    std::uint32_t at = 0;
    for (; warps[at] <= target; ++at) target -= warps[at];
    const std::uint64_t weight = warps[at];
    sync_block();
    begin += at * piece;
    end = piece < end - begin ? begin + piece : end;
    if (end - begin == 1) return {begin, weight, target};
  }
}

// Finds where to cut the candidates, for top-k and similar steps: returns the largest key k for which the candidates with a key of at least
// k together weigh more than the target. (Keys order candidates from best to worst, sample_key().) Returns 0, which keeps all, if even all
// candidates together do not weigh more. A candidate's weight is weight(logit).
template <class Weight, class Target>
TESSERA_DEVICE std::uint64_t find_threshold(Shared& shared, const Row& row, Weight&& weight, Target&& target_of) {
  std::uint64_t key = 0;      // the result's leading digits, as far as they are known
  std::uint64_t decided = 0;  // mask of the bits of these digits
  std::uint64_t rest = 0;     // the target less the weights of all candidates whose leading digits are higher
  for (int i = 0; i < kKeyDigits; ++i) {
    const KeyDigit digit = key_digit(i);
    const std::uint64_t bits = std::uint64_t{digit.mask} << digit.shift;
    if (is_same_for_all(digit, row.vocab)) {
      key |= bits;
      decided |= bits;
      continue;
    }
    for (std::uint32_t at = threadIdx.x; at < kDigits; at += blockDim.x) shared.histogram[at] = 0;
    sync_block();
    for_each_left(row, shared.cuts, threadIdx.x, row.vocab, blockDim.x, [&](std::uint32_t token, float logit) {
      const std::uint64_t its = sample_key(logit, token);
      if ((its & decided) != key) return;
      const std::uint64_t w = weight(logit);
      if (w != 0) atomic_add(&shared.histogram[(its >> digit.shift) & digit.mask], w);
    });
    sync_block();
    const Found found = find_first(
        shared.warps, kDigits,
        [&](std::uint32_t first, std::uint32_t end) {
          std::uint64_t sum = 0;
          for (std::uint32_t at = first + lane_id(); at < end; at += kWarp) sum += shared.histogram[kDigits - 1 - at];
          return sum;
        },
        [&](std::uint64_t total) { return i == 0 ? target_of(total) : rest; });
    if (found.index == kDigits) return 0;
    key |= std::uint64_t{kDigits - 1 - found.index} << digit.shift;
    decided |= bits;
    rest = found.rest;
    // From the logit's last digit on, only the token's digits are missing. All tokens of one logit weigh the same. If the sum passes the
    // target only at the last of these tokens, all of them are kept, and the token's digits need not be found.
    if (i + 1 == kLogitDigits && rest >= found.weight - weight(key_logit(key))) return key;
  }
  return key;
}

// One draw: applies steps and chooses a token.
struct Drawing {
  Shared& shared;
  const Row& row;
  float top;           // the highest logit, after the steps so far
  std::uint64_t best;  // key of the best candidate, unless logits were scaled
  bool is_scaled;

  TESSERA_DEVICE auto mass() const {
    return [highest = top, bits = mass_bits(row.vocab)](float logit) { return sample_mass(logit, highest, bits); };
  }

  TESSERA_DEVICE SampleResult choose_best() {
    if (is_scaled) {  // scaling may have made different logits equal
      best = 0;
      for_each_left(row, shared.cuts, threadIdx.x, row.vocab, blockDim.x, [&](std::uint32_t token, float logit) {
        const std::uint64_t key = sample_key(logit, token);
        best = key > best ? key : best;
      });
      best = block_max(best, shared.warps);
    }
    return {static_cast<Token>(key_token(best)), SampleStatus::ok};
  }

  TESSERA_DEVICE void add(const Cut& cut) {
    if (threadIdx.x == 0) shared.cuts.list[shared.cuts.size++] = cut;
    sync_block();
  }

  TESSERA_DEVICE void scale(float temperature) {
    const Cut cut = scaling(top, temperature);
    top = (top - cut.shift) / temperature;
    is_scaled = true;
    add(cut);
  }

  // Keeps the `count` best candidates, and for top-p also the candidates that are needed to reach p.
  TESSERA_DEVICE void keep(const SampleStep& step) {
    std::uint64_t threshold = ~std::uint64_t{0};
    if (step.count > 1) {
      threshold = find_threshold(
          shared, row, [](float) { return std::uint64_t{1}; }, [&](std::uint64_t) { return step.count - 1; });
    }
    if (step.kind == SampleStepKind::top_p && threshold != 0) {
      const float p = step.value;
      const std::uint64_t other =
          find_threshold(shared, row, mass(), [p](std::uint64_t total) { return share_target(p, total); });
      threshold = other < threshold ? other : threshold;
    }
    if (threshold != 0) add({.threshold = threshold, .shift = 0.0f, .temperature = 0.0f});
  }

  TESSERA_DEVICE SampleResult draw(double uniform) {
    const auto its = mass();
    const Found found = find_first(
        shared.warps, row.vocab,
        [&](std::uint32_t first, std::uint32_t end) {
          std::uint64_t sum = 0;
          for_each_left(row, shared.cuts, first + lane_id(), end, kWarp,
                        [&](std::uint32_t, float logit) { sum += its(logit); });
          return sum;
        },
        [uniform](std::uint64_t total) { return draw_target(uniform, total); });
    return {static_cast<Token>(found.index), SampleStatus::ok};
  }
};

TESSERA_DEVICE SampleResult sample(Shared& shared, const Row& row, const backend::SampleRow& asked) {
  std::uint64_t best = 0;
  std::uint64_t first_nan = 0;  // complement of the first token whose logit is NaN (a complement is never 0); 0: there is none
  for (std::uint32_t token = threadIdx.x; token < row.vocab; token += blockDim.x) {
    const float logit = row.logits[token];
    const std::uint64_t key = sample_key(logit, token);
    best = key > best ? key : best;
    if (logit != logit && first_nan == 0) first_nan = ~std::uint64_t{token};
  }
  if (threadIdx.x == 0) shared.cuts.size = 0;
  best = block_max(best, shared.warps);
  first_nan = block_max(first_nan, shared.warps);
  if (first_nan != 0) return {static_cast<Token>(~first_nan), SampleStatus::nan};
  const float top = key_logit(best);
  if (top == -kInfinity) return {-1, SampleStatus::nothing};

  Drawing drawing{shared, row, top, best, false};
  for (std::uint32_t i = 0; i < asked.steps.size; ++i) {
    const SampleStep& step = asked.steps.list[i];
    switch (step.kind) {
      case SampleStepKind::greedy: return drawing.choose_best();
      case SampleStepKind::temperature:
        if (step.value == 0.0f) return drawing.choose_best();
        if (step.value != 1.0f) drawing.scale(step.value);
        break;
      case SampleStepKind::top_k:
        if (step.count == 1) return drawing.choose_best();
        if (step.count > 1) drawing.keep(step);
        break;
      case SampleStepKind::top_p:
        if (step.value < 1.0f) drawing.keep(step);
        break;
    }
  }
  return drawing.draw(asked.uniform);
}

}  // namespace

TESSERA_KERNEL(sample_tokens, kSampleThreads, SampleArgs) {
  TESSERA_SHARED Shared shared;
  const backend::SampleRow& asked = args.rows[blockIdx.x];
  const Row row{args.logits + std::uint64_t{asked.row} * args.vocab, args.vocab};
  const SampleResult result = sample(shared, row, asked);
  if (threadIdx.x == 0) args.results[blockIdx.x] = result;
}

}  // namespace tessera::cuda
