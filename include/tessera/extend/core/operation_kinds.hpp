// Kinds of operations: a model's description names them, and every backend computes them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

enum class NormKind : std::int32_t {
  rms = 0,    // Zhang and Sennrich 2019
  layer = 1,  // Ba, Kiros and Hinton 2016
};

enum class ActivationKind : std::int32_t {
  silu = 0,
  gelu_tanh = 1,  // Hendrycks and Gimpel 2016, the tanh form
  gelu_erf = 2,   // the same paper's exact form
  clamped_swiglu = 3,  // gpt-oss: the gate's x sigmoid(1.702 x), x at most 7, times the other side, from -7 to 7, plus 1
  sigmoid = 4,
  squared_relu = 5,  // max(x, 0)^2 (So et al. 2021)
};
inline constexpr std::size_t kActivationKinds = 6;

// How a router's logits become the weights of a row's experts.
enum class RoutingKind : std::int32_t {
  softmax = 0,         // over all experts
  chosen_softmax = 1,  // over those that the row takes
  sigmoid = 2,         // of each by itself
};

// What a group of experts is judged by, where a row takes its experts from some groups alone: scores with their biases.
enum class GroupScore : std::int32_t {
  two_best = 0,  // the sum of its two highest
  best = 1,
};

// Which elements of a head rotate together (Su et al. 2021), of `n` that rotate.
enum class RopePairs : std::int32_t {
  interleaved = 0,  // 2i and 2i + 1
  halves = 1,       // i and i + n/2
};

// Which group's keys a head of a recurrent mixer has, of `groups`.
enum class StateGroups : std::int32_t {
  blocks = 0,  // head h has group h / (heads / groups)
  cyclic = 1,  // head h has group h mod groups
};

// In place of a rope table's index: keys and queries do not rotate.
inline constexpr std::uint32_t kNoRope = 0xffffffff;

}  // namespace tessera
