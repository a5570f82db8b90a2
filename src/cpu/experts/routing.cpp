#include "cpu/experts/routing.hpp"

#include <algorithm>
#include <limits>

#include "core/math_inline.hpp"

namespace tessera::cpu {

namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// Computes the softmax in place: exp(x - the largest x), divided by the sum of these exponentials, which is added up in the order of x.
void softmax(std::span<float> x) noexcept {
  float top = kLeast, sum = 0.0f;
  for (const float value : x) top = value > top ? value : top;
  for (float& value : x) sum += value = math::inlined::exp(value - top);
  for (float& value : x) value /= sum;
}

// Returns whether a group of experts is one of the n_used_groups best groups, whose experts may be chosen. A group's score is the score of
// its best expert, or the sum of its two best experts' scores (GroupScore). If groups have equal scores, the group with the lower index is
// better. Plain loops are enough, since there are few groups.
bool is_used_group(std::span<const float> scores, std::span<const float> bias, const backend::Routing& how, std::size_t group) noexcept {
  const std::size_t size = scores.size() / how.n_groups;
  const bool adds = how.group_score == GroupScore::two_best && size != 1;
  const auto score_of = [&](std::size_t g) {
    float first = kLeast, second = kLeast;
    for (std::size_t i = g * size; i < (g + 1) * size; ++i) {
      const float score = bias.empty() ? scores[i] : scores[i] + bias[i];
      if (score > first)
        second = first, first = score;
      else if (score > second)
        second = score;
    }
    const float sum = adds ? first + second : first;
    return sum > kLeast ? sum : kLeast;  // kLeast also if the sum is NaN
  };
  const float own = score_of(group);
  std::size_t before = 0;
  for (std::size_t g = 0; g < how.n_groups; ++g) {
    const float other = score_of(g);
    if (g < group ? !(other < own) : other > own) ++before;
  }
  return before < how.n_used_groups;
}

}  // namespace

void route(const backend::Routing& how, std::span<const float> bias, std::span<const float> scales, std::span<float> logits,
           std::span<std::uint32_t> chosen, std::span<float> weights) noexcept {
  const std::span<float> scores = logits;
  if (how.kind == RoutingKind::softmax) softmax(scores);
  if (how.kind == RoutingKind::sigmoid) {
    for (float& score : scores) score = 1.0f / (1.0f + math::inlined::exp(-score));
  }
  // Takes n_used experts one after another, each time the best one that is not taken yet. A score of NaN is worse than all others.
  std::size_t n = 0;
  const auto is_taken = [&](std::uint32_t expert) {
    return std::find(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(n), expert) !=
           chosen.begin() + static_cast<std::ptrdiff_t>(n);
  };
  const std::uint32_t n_experts = static_cast<std::uint32_t>(scores.size());
  const std::uint32_t size = n_experts / how.n_groups;
  for (; n < chosen.size(); ++n) {
    std::uint32_t best = n_experts;
    float most = kLeast;
    for (std::uint32_t first = 0; first < n_experts; first += size) {
      if (how.n_used_groups < how.n_groups && !is_used_group(scores, bias, how, first / size)) continue;
      for (std::uint32_t expert = first; expert < first + size; ++expert) {
        const float score = bias.empty() ? scores[expert] : scores[expert] + bias[expert];
        if (best != n_experts && !(score > most)) continue;
        if (is_taken(expert)) continue;
        best = expert;
        most = score > kLeast ? score : kLeast;
      }
    }
    chosen[n] = best;
  }
  std::sort(chosen.begin(), chosen.end());
  for (std::size_t i = 0; i < n; ++i) weights[i] = scores[chosen[i]];
  if (how.kind == RoutingKind::chosen_softmax) softmax(weights);
  if (how.renormalises) {
    float sum = 0.0f;
    for (const float weight : weights) sum += weight;
    if (sum != 0.0f) {  // if all scores are 0, the weights stay 0
      for (float& weight : weights) weight /= sum;
    }
  }
  if (how.scale != 1.0f) {
    for (float& weight : weights) weight *= how.scale;
  }
  if (!scales.empty()) {
    for (std::size_t i = 0; i < n; ++i) weights[i] *= scales[chosen[i]];
  }
}

}  // namespace tessera::cpu
