// The host's Sampler of the steps that a recipe names.
#pragma once

#include <cstdint>

#include <tessera/extend/core/sample_steps.hpp>
#include <tessera/sampling/chain.hpp>

namespace tessera::tests {

inline Sampler sampler_of(const SampleSteps& steps, std::uint64_t seed = 0) {
  auto made = sampling::chain();
  for (std::uint32_t i = 0; i < steps.size; ++i) {
    const SampleStep& step = steps.list[i];
    switch (step.kind) {
      case SampleStepKind::greedy: made.greedy(); break;
      case SampleStepKind::temperature: made.temperature(step.value); break;
      case SampleStepKind::top_k: made.top_k(step.count); break;
      case SampleStepKind::top_p: made.top_p(step.value, step.count); break;
    }
  }
  return made.seed(seed).build();
}

}  // namespace tessera::tests
