// Counts votes: how much the step's voting rows attend to each key (backend::RowVotes). From the votes, a token budget later decides
// which keys to drop. The attention kernels write the scores of voting rows to AttendJob::scores. This file turns the scores into
// attention weights, the weights' squares into integers, and adds the integers up for each key.
#include <algorithm>
#include <limits>

#include "core/math_inline.hpp"
#include "cpu/cpu_backend.hpp"

namespace tessera::cpu {
namespace {

constexpr float kLn2 = 0x1.62e43p-1f;
constexpr std::size_t kVoteBlock = 256;  // keys of a task

// Turns the scores of n keys into attention weights, in place: exp(score - the largest score), divided by the sum of these exponentials.
// `scores` has the scores times log2(e) (AttendJob::scores). If the head has a sink (not null), the sum includes the sink's exponential.
// The sum has 16 lanes (key i is added to lane i mod 16), so that compilers vectorise and every machine adds in the same order.
void votes_of(float* scores, std::size_t n, const float* sink) noexcept {
  float top = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < n; ++i) top = scores[i] > top ? scores[i] : top;
  float lanes[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t lane = 0; lane < 16; ++lane) {
      const float weight = math::inlined::exp((scores[i + lane] - top) * kLn2);
      scores[i + lane] = weight;
      lanes[lane] += weight;
    }
  }
  for (; i < n; ++i) lanes[i % 16] += scores[i] = math::inlined::exp((scores[i] - top) * kLn2);
  float sum = sink != nullptr ? math::inlined::exp(*sink - top * kLn2) : 0.0f;
  for (const float lane : lanes) sum += lane;
  const float share = 1.0f / sum;
  for (i = 0; i < n; ++i) scores[i] *= share;
}

}  // namespace

void CpuBackend::count_votes(const backend::AttentionShape& shape) noexcept {
  const std::size_t heads = shape.n_heads, stride = voters_.stride();
  struct Seen {
    std::size_t globals, first, last;  // keys: [0, globals) and [first, last)
  };
  const auto seen_by = [&](const backend::RowVotes& row) {
    const auto last = static_cast<std::size_t>(rows_[row.row].position + 1);
    const std::size_t first = shape.window != 0 && last > shape.window ? last - shape.window : 0;
    return Seen{std::min<std::size_t>(shape.globals, first), first, last};
  };
  for_each(voters_.all().size() * heads, 1, [&](std::size_t item, std::byte*) {
    const backend::RowVotes& row = voters_.all()[item / heads];
    const std::size_t head = item % heads;
    const Seen seen = seen_by(row);
    // For this computation, moves the scores of global keys next to those of the window's keys.
    float* const scores = voters_.scores()[row.row] + head * stride;
    float* const all = scores + seen.first - seen.globals;
    std::memmove(all, scores, seen.globals * sizeof(float));
    votes_of(all, seen.globals + seen.last - seen.first, shape.sinks != nullptr ? shape.sinks->data + head : nullptr);
    std::memmove(scores, all, seen.globals * sizeof(float));
  });
  std::size_t keys = 0;
  for (const backend::RowVotes& row : voters_.all()) keys = std::max(keys, seen_by(row).last);
  // A task has its own range of keys, and adds the votes of all rows for these keys. So no two tasks add to the same sum, although
  // several rows may add to one sum (RowVotes::of_keys).
  for_each((keys + kVoteBlock - 1) / kVoteBlock, 1, [&](std::size_t block, std::byte*) {
    for (const backend::RowVotes& row : voters_.all()) {
      const Seen seen = seen_by(row);
      const auto add = [&](std::size_t from, std::size_t to) {
        const std::size_t first = std::max(from, block * kVoteBlock), last = std::min(to, (block + 1) * kVoteBlock);
        if (first >= last) return;
        std::int32_t units[kVoteBlock] = {};
        for (std::size_t head = 0; head < heads; ++head) {
          const float* weights = voters_.scores()[row.row] + head * stride + first;
          for (std::size_t i = 0; i < last - first; ++i) {
            // A NaN counts as 0.
            const float weight = weights[i] <= 1.0f ? weights[i] : 0.0f;
            units[i] += static_cast<std::int32_t>(weight * weight * static_cast<float>(backend::kVoteUnits) + 0.5f);
          }
        }
        for (std::size_t i = 0; i < last - first; ++i) row.of_keys[first + i] += static_cast<std::uint32_t>(units[i]);
      };
      add(0, seen.globals);
      add(seen.first, seen.last);
    }
  });
}

}  // namespace tessera::cpu
