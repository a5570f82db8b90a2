// The kinds of operations that a ModelSpec can name. Every backend computes all of them.
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
  clamped_swiglu = 3,  // gpt-oss: x sigmoid(1.702 x) * (up + 1), with the gate's x cut to at most 7 and up to [-7, 7]
  sigmoid = 4,
  squared_relu = 5,  // max(x, 0)^2 (So et al. 2021)
  tanh = 6,
};
inline constexpr std::size_t kActivationKinds = 7;

// The way in which a router's logits become the weights of a row's experts.
enum class RoutingKind : std::int32_t {
  softmax = 0,         // softmax over all experts
  chosen_softmax = 1,  // softmax over the experts that were chosen for the row
  sigmoid = 2,         // sigmoid of each logit
};

// The score of a group of experts, computed from the scores of its experts (with their biases). A row chooses its experts from the groups
// with the highest scores.
enum class GroupScore : std::int32_t {
  two_best = 0,  // sum of the two highest
  best = 1,      // the highest
};

// The pairs of a head's elements that rotate together (Su et al. 2021). n: the number of elements that rotate; i: the index of the pair.
enum class RopePairs : std::int32_t {
  interleaved = 0,  // 2i and 2i + 1
  halves = 1,       // i and i + n/2
};

// The way in which the heads of a recurrent mixer are divided into groups. All heads of a group use the same keys.
enum class StateGroups : std::int32_t {
  blocks = 0,  // head h uses group h / (heads / groups)
  cyclic = 1,  // head h uses group h mod groups
};

// Stands in place of the index of a rope table, in layers whose queries and keys are not rotated.
inline constexpr std::uint32_t kNoRope = 0xffffffff;

}  // namespace tessera
