// A sampler as numbers. With these numbers and the logits, a backend draws the same tokens as the sampler.
#pragma once

#include <cstdint>

#include <tessera/extend/core/sample_steps.hpp>
#include <tessera/extend/sampling/philox.hpp>

namespace tessera::sampling {

// The recipe of a sampler. Sampler::recipe() returns it.
//
//   if (auto recipe = sampler.recipe()) std::printf("%f\n", recipe->uniform(position));
struct Recipe {
  SampleSteps steps;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;

  // Returns the random number that decides the draw at `position`: the number that Sampler::sample() uses
  // (Context::uniform() with stage 0 and n = 0).
  [[nodiscard]] double uniform(std::uint64_t position) const noexcept {
    return philox_uniform(seed, position, 0, stream);
  }
};

}  // namespace tessera::sampling
