#include "cuda/kernels/experts.hpp"

#include "core/math_inline.hpp"
#include "cuda/kernels/device.hpp"
#include "cuda/kernels/elementwise.hpp"

namespace tessera::cuda {

namespace {

inline constexpr float kLeast = -__builtin_inff();

// The routing of one row: which experts the row uses, and with which weights. A warp computes it. Lane l has experts l, l + 32, ...
class Router {
 public:
  TESSERA_DEVICE explicit Router(const RouteArgs& args)
      : args_(args),
        scores_(static_cast<float*>(dynamic_shared())),
        groups_(scores_ + args.n_experts),
        taken_(reinterpret_cast<std::uint32_t*>(groups_ + args.n_groups)),
        logits_(args.logits + std::size_t{blockIdx.x} * args.n_experts),
        chosen_(args.chosen + std::size_t{blockIdx.x} * args.n_used),
        weights_(args.weights + std::size_t{blockIdx.x} * args.n_used) {}

  TESSERA_DEVICE void run() {
    compute_scores();
    sync_warp();
    if (limits_groups()) {
      for (std::uint32_t g = lane_id(); g < args_.n_groups; g += kWarp) groups_[g] = score_of_group(g);
      sync_warp();
    }
    for (std::uint32_t n = 0; n < args_.n_used; ++n) {
      take_best();
      sync_warp();
    }
    list_taken();
    sync_warp();
    if (lane_id() == 0) weigh();
  }

 private:
  [[nodiscard]] TESSERA_DEVICE bool limits_groups() const { return args_.n_used_groups < args_.n_groups; }
  [[nodiscard]] TESSERA_DEVICE float choice_score(std::uint32_t expert) const {
    return args_.bias == nullptr ? scores_[expert] : scores_[expert] + args_.bias[expert];
  }

  TESSERA_DEVICE void compute_scores() {
    float top = kLeast, sum = 0.0f;
    for (std::uint32_t e = lane_id(); e < args_.n_experts; e += kWarp) {
      const float logit = logits_[e];
      scores_[e] = args_.kind == RoutingKind::sigmoid ? 1.0f / (1.0f + math::inlined::exp(-logit)) : logit;
      taken_[e] = 0;
      top = logit > top ? logit : top;
    }
    if (args_.kind != RoutingKind::softmax) return;
    top = warp_max(top);
    for (std::uint32_t e = lane_id(); e < args_.n_experts; e += kWarp) {
      scores_[e] = math::inlined::exp(scores_[e] - top);
      sum = sum + scores_[e];
    }
    sum = warp_sum(sum);
    for (std::uint32_t e = lane_id(); e < args_.n_experts; e += kWarp) scores_[e] = scores_[e] / sum;
  }

  // Returns the score of a group's best expert, or the sum of the two best (GroupScore); kLeast instead of NaN.
  [[nodiscard]] TESSERA_DEVICE float score_of_group(std::uint32_t group) const {
    const std::uint32_t size = args_.n_experts / args_.n_groups;
    float first = kLeast, second = kLeast;
    for (std::uint32_t e = group * size; e < (group + 1) * size; ++e) {
      const float score = choice_score(e);
      if (score > first) {
        second = first;
        first = score;
      } else if (score > second) {
        second = score;
      }
    }
    const float sum = args_.group_score == GroupScore::two_best && size != 1 ? first + second : first;
    return sum > kLeast ? sum : kLeast;
  }

  // Returns whether fewer than n_used_groups groups are better. If groups have equal scores, the one with the lower index is better.
  [[nodiscard]] TESSERA_DEVICE bool is_used_group(std::uint32_t group) const {
    std::uint32_t better = 0;
    for (std::uint32_t g = 0; g < args_.n_groups; ++g) {
      if (g < group ? !(groups_[g] < groups_[group]) : groups_[g] > groups_[group]) ++better;
    }
    return better < args_.n_used_groups;
  }

  // Marks the best expert that is not marked yet. NaN is worse than every other score. If experts have equal scores, the first is better.
  TESSERA_DEVICE void take_best() {
    const std::uint32_t none = args_.n_experts, size = none / args_.n_groups;
    std::uint32_t best = none;
    float most = kLeast;
    for (std::uint32_t e = lane_id(); e < args_.n_experts; e += kWarp) {
      const float score = choice_score(e);
      if (taken_[e] != 0 || (best != none && !(score > most))) continue;
      if (limits_groups() && !is_used_group(e / size)) continue;
      best = e;
      most = score > kLeast ? score : kLeast;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const std::uint32_t other = shuffle_xor(best, distance);
      const float its = shuffle_xor(most, distance);
      if (other == none || (best != none && (its < most || (its == most && best < other)))) continue;
      best = other;
      most = its;
    }
    if (lane_id() == 0 && best != none) taken_[best] = 1;
  }

  // Writes the marked experts, ascending.
  TESSERA_DEVICE void list_taken() {
    std::uint32_t n = 0;
    for (std::uint32_t base = 0; base < args_.n_experts; base += kWarp) {
      const std::uint32_t expert = base + lane_id();
      const bool taken = expert < args_.n_experts && taken_[expert] != 0;
      const unsigned bits = ballot(taken);
      if (taken) chosen_[n + ones_in(bits & ((1u << lane_id()) - 1))] = expert;
      n += ones_in(bits);
    }
  }

  TESSERA_DEVICE void weigh() {
    const std::uint32_t n = args_.n_used;
    for (std::uint32_t i = 0; i < n; ++i) weights_[i] = scores_[chosen_[i]];
    if (args_.kind == RoutingKind::chosen_softmax) {
      float top = kLeast, sum = 0.0f;
      for (std::uint32_t i = 0; i < n; ++i) top = weights_[i] > top ? weights_[i] : top;
      for (std::uint32_t i = 0; i < n; ++i) {
        weights_[i] = math::inlined::exp(weights_[i] - top);
        sum = sum + weights_[i];
      }
      for (std::uint32_t i = 0; i < n; ++i) weights_[i] = weights_[i] / sum;
    }
    if (args_.renormalises != 0) {
      float sum = 0.0f;
      for (std::uint32_t i = 0; i < n; ++i) sum = sum + weights_[i];
      if (sum != 0.0f) {  // if all scores are 0, the weights stay 0
        for (std::uint32_t i = 0; i < n; ++i) weights_[i] = weights_[i] / sum;
      }
    }
    if (args_.scale != 1.0f) {
      for (std::uint32_t i = 0; i < n; ++i) weights_[i] = weights_[i] * args_.scale;
    }
    if (args_.scales != nullptr) {
      for (std::uint32_t i = 0; i < n; ++i) weights_[i] = weights_[i] * args_.scales[chosen_[i]];
    }
  }

  const RouteArgs& args_;
  float* const scores_;          // [n_experts]
  float* const groups_;          // [n_groups]
  std::uint32_t* const taken_;   // [n_experts]: 1 if the expert is chosen
  const float* const logits_;    // [n_experts]
  std::uint32_t* const chosen_;  // [n_used]
  float* const weights_;         // [n_used]
};

}  // namespace

TESSERA_KERNEL(route_experts, kRouteThreads, RouteArgs) { Router(args).run(); }

// Each thread counts and lists the slots of its experts; thread 0 adds up where each expert's slots begin.
TESSERA_KERNEL(deal_experts, kDealThreads, DealArgs) {
  const auto tiles_of = [&](std::uint32_t n) { return (n + args.tile_slots - 1) / args.tile_slots; };
  for (std::uint32_t e = threadIdx.x; e < args.n_experts; e += kDealThreads) {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < args.n_slots; ++i) n += args.chosen[i] == e ? 1 : 0;
    args.first[e] = n;
  }
  sync_block();
  if (threadIdx.x == 0) {
    std::uint32_t slots = 0, tiles = 0;
    for (std::uint32_t e = 0; e < args.n_experts; ++e) {
      const std::uint32_t n = args.first[e];
      args.first[e] = slots;
      args.first_tile[e] = tiles;
      slots += n;
      tiles += tiles_of(n);
    }
    *args.n_tiles = tiles;
  }
  sync_block();
  for (std::uint32_t e = threadIdx.x; e < args.n_experts; e += kDealThreads) {
    const std::uint32_t first = args.first[e];
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < args.n_slots; ++i) {
      if (args.chosen[i] == e) args.slots[first + n++] = i;
    }
    for (std::uint32_t i = 0; i < tiles_of(n); ++i) {
      const std::uint32_t done = i * args.tile_slots, left = n - done;
      args.tiles[args.first_tile[e] + i] = {e, first + done, left < args.tile_slots ? left : args.tile_slots};
    }
  }
}

TESSERA_KERNEL(sum_experts, kRowThreads, SumExpertsArgs) {
  const std::size_t first = std::size_t{blockIdx.x} * args.n_used;
  for (std::uint32_t k = threadIdx.x; k < args.columns; k += kRowThreads) {
    float sum = 0.0f;
    for (std::uint32_t i = 0; i < args.n_used; ++i) {
      sum = sum + args.weights[first + i] * args.given[(first + i) * args.columns + k];
    }
    args.out[std::size_t{blockIdx.x} * args.columns + k] = sum;
  }
}

}  // namespace tessera::cuda
