// Sampling stages as plain numbers, so that a backend (a GPU, for example) can compute them without the stages' C++ objects. Each step
// computes what the sampling stage of the same name computes (sampling/chain.hpp).
#pragma once

#include <cstdint>

namespace tessera {

enum class SampleStepKind : std::int32_t { greedy = 0, temperature = 1, top_k = 2, top_p = 3 };

struct SampleStep {
  SampleStepKind kind = SampleStepKind::greedy;
  float value = 0.0f;       // temperature; top_p: p
  std::uint64_t count = 0;  // top_k: k; top_p: min_keep
};

inline constexpr std::uint32_t kMaxSampleSteps = 8;

// The steps, in order; the draw comes after the last step. Without steps: a draw from the plain softmax.
struct SampleSteps {
  SampleStep list[kMaxSampleSteps];
  std::uint32_t size = 0;
};

}  // namespace tessera
