#include <tessera/extend/sampling/candidates.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>

#include "sampling/loops.hpp"
#include "sampling/order.hpp"

namespace tessera::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Buckets with which nth_key() finds the n-th best candidate without sorting. Candidates are counted by the 12 leading bits of their 64-bit
// keys (order.hpp: a better candidate has a higher key). The counts tell which bucket has the n-th best candidate, and only the keys of
// that bucket are searched.
constexpr int kShift = 52;
constexpr std::size_t kBuckets = 4096;

// Returns the n-th highest of the keys, 1 <= n <= keys.size(). Changes the order of the keys.
std::uint64_t nth_of(std::span<std::uint64_t> keys, std::size_t n) noexcept {
  const auto nth = keys.begin() + static_cast<std::ptrdiff_t>(n - 1);
  std::nth_element(keys.begin(), nth, keys.end(), std::greater<>());
  return *nth;
}

}  // namespace

std::uint64_t Candidates::key(std::size_t i) const noexcept {
  return order_key(workspace_.logits[i], workspace_.tokens[i]);
}

std::size_t Candidates::best_index() const noexcept {
  std::size_t best = loops::first_highest(workspace_.logits.data(), size_);
  if (!by_token_) {  // a later candidate of the same logit may have the lower token id
    for (std::size_t i = best + 1; i < size_; ++i) best = key(i) > key(best) ? i : best;
  }
  return best;
}

// Returns the n-th highest key, 1 <= n <= size. The n best candidates are the ones whose key is at least the result.
std::uint64_t Candidates::nth_key(std::size_t n) noexcept {
  constexpr std::size_t kBlock = 64;
  const auto keys = workspace_.keys.first(size_);
  const std::size_t blocks = (size_ + kBlock - 1) / kBlock;
  std::size_t count = 0;
  if (n <= blocks / 2) {
    // n is small: find a lower bound first, so that most blocks of kBlock candidates are not searched. Take the best logit of each block,
    // and let `bound` be the n-th highest of these logits. At least n candidates reach `bound`, so a candidate below `bound` is not among
    // the n best. Only blocks whose best logit reaches `bound` are searched.
    const auto best = keys.last(blocks);  // at the end, so that the keys written below do not overwrite unread entries
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::size_t begin = block * kBlock;
      best[block] = order_of_rank(
          loops::highest_rank(workspace_.logits.data() + begin, std::min(kBlock, size_ - begin)));
      keys[block] = best[block];
    }
    const std::uint64_t bound = nth_of(keys.first(blocks), n);
    for (std::size_t block = 0; block < blocks; ++block) {
      if (best[block] < bound) continue;
      const std::size_t end = std::min(size_, (block + 1) * kBlock);
      for (std::size_t i = block * kBlock; i < end; ++i) {
        if (const std::uint64_t k = key(i); k >> 32 >= bound) keys[count++] = k;
      }
    }
    return nth_of(keys.first(count), n);
  }
  std::array<std::uint32_t, kBuckets> histogram{};
  for (std::size_t i = 0; i < size_; ++i) {
    keys[i] = key(i);
    ++histogram[keys[i] >> kShift];
  }
  std::size_t bucket = histogram.size() - 1;
  while (histogram[bucket] < n) n -= histogram[bucket--];
  for (std::size_t i = 0; i < size_; ++i) {
    const std::uint64_t k = keys[i];
    keys[count] = k;
    count += k >> kShift == bucket ? 1 : 0;
  }
  return nth_of(keys.first(count), n);
}

// Moves the candidates whose key is at least `threshold` to the front, and returns their number.
std::size_t Candidates::move_kept(std::uint64_t threshold) const noexcept {
  const std::uint32_t least = static_cast<std::uint32_t>(threshold >> 32);
  const std::uint32_t last = static_cast<std::uint32_t>(threshold);  // the token's half of the key, for logits of order `least`
  constexpr std::size_t kBlock = 64;
  std::size_t kept = 0;
  for (std::size_t begin = 0; begin < rows_; begin += kBlock) {
    const std::size_t end = std::min(rows_, begin + kBlock);
    if (order_of_rank(loops::highest_rank(workspace_.logits.data() + begin, end - begin)) < least) continue;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t order = order_of_rank(loops::rank(workspace_.logits[i]));
      const bool tie = (order == least) & (~static_cast<std::uint32_t>(workspace_.tokens[i]) >= last);
      move_row(i, kept);
      kept += static_cast<std::size_t>((order > least) | tie);
    }
  }
  return kept;
}

// Keeps the candidates whose key is at least `threshold`, which must be the key of a candidate.
void Candidates::keep_keys_from(std::uint64_t threshold) noexcept { shrink(move_kept(threshold)); }

void Candidates::remove_now() const noexcept {
  put_off_ = false;
  rows_moved_ = std::max(rows_moved_, move_kept(put_off_threshold_) + 1);
  rows_ = size_;
  if (sum_loose_) sum_ = exact_sum();
  sum_loose_ = false;
}

double Candidates::exact_sum() const noexcept { return loops::sum(workspace_.weights.data(), size_); }

void Candidates::keep_best(std::size_t n) noexcept {
  settle();
  if (n >= size_) return;
  if (n == 0) return shrink(0);
  if (n > 1) return keep_keys_from(nth_key(n));
  move_row(best_index(), 0);
  shrink(1);
}

void Candidates::keep_from(double threshold) noexcept {
  settle();
  const bool weighed = weighed_;
  const float top = size_ > 0 ? workspace_.logits[best_index()] : 0.0f;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const bool keep = !(static_cast<double>(workspace_.logits[i]) < threshold);
    move_row(i, kept);
    kept += static_cast<std::size_t>(keep);
  }
  shrink(kept);
  weighed_ = weighed && static_cast<double>(top) >= threshold;
}

void Candidates::divide_logits(float shift, float divisor) noexcept {
  settle();
  loops::divide(workspace_.logits.data(), size_, shift, divisor);
  weighed_ = false;
}

void Candidates::sort_best(std::size_t n) noexcept {
  settle();
  if (n == 0 || size_ == 0) return;
  std::size_t front = size_;
  const auto index = workspace_.keys;  // low halves: indices; high halves: room for a column
  const auto reorder = [&](auto column, std::size_t count) {  // sets column[i] = column[index[i]] for all i
    using Value = typename decltype(column)::value_type;
    for (std::size_t i = 0; i < count; ++i) {
      const auto from = static_cast<std::uint32_t>(index[i]);
      index[i] = (std::uint64_t{std::bit_cast<std::uint32_t>(column[from])} << 32) | from;
    }
    for (std::size_t i = 0; i < count; ++i) column[i] = std::bit_cast<Value>(static_cast<std::uint32_t>(index[i] >> 32));
  };
  const auto reorder_rows = [&](std::size_t count) {
    reorder(workspace_.tokens, count);
    reorder(workspace_.logits, count);
    reorder(workspace_.weights, count);
  };
  if (n < size_) {  // moves the n best to the front, in their present order, and the others after them
    const std::uint64_t threshold = nth_key(n);
    front = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (key(i) >= threshold) index[front++] = i;
    }
    std::size_t other = front;
    for (std::size_t i = 0, next = 0; i < size_; ++i) {
      if (next < front && index[next] == i) {
        ++next;
      } else {
        index[other++] = i;
      }
    }
    reorder_rows(size_);
  }
  const auto best = index.first(front);
  for (std::size_t i = 0; i < front; ++i) best[i] = i;
  std::sort(best.begin(), best.end(), [&](std::uint64_t a, std::uint64_t b) { return key(a) > key(b); });
  reorder_rows(front);
  rows_moved_ = std::max(rows_moved_, size_);
  by_token_ = false;
}

bool Candidates::softmax() noexcept {
  sum_ = 0.0;
  double sum = 0.0;
  if (weighed_) {
    sum = put_off_ ? loops::total(workspace_.weights.data(), rows_) : exact_sum();
  } else {
    settle();
    const auto logits = workspace_.logits.first(size_);
    const auto weights = workspace_.weights.first(size_);
    const float top = size_ > 0 ? logits[best_index()] : -kInfinity;
    if (!(top > -kInfinity)) return false;
    if (top == kInfinity) {
      for (std::size_t i = 0; i < size_; ++i) {
        weights[i] = logits[i] != logits[i] ? logits[i] : logits[i] == kInfinity ? 1.0f : 0.0f;
      }
      sum = exact_sum();
    } else {
      sum = loops::weigh(logits.data(), size_, top, weights.data());
    }
  }
  sum_loose_ = put_off_;
  weighed_ = sum > 0.0;
  if (weighed_) sum_ = sum;
  return weighed_;
}

}  // namespace tessera::sampling
