// A sampler said in numbers: what a backend needs to draw the same tokens beside the logits.
#pragma once

#include <cstdint>

#include <tessera/extend/core/sample_steps.hpp>
#include <tessera/extend/sampling/philox.hpp>

namespace tessera::sampling {

struct Recipe {
  SampleSteps steps;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;

  // The number that the draw at `position` is made of: Sampler::sample() takes the same one (stage 0, number 0).
  [[nodiscard]] double uniform(std::uint64_t position) const noexcept {
    return philox_uniform(seed, position, 0, stream);
  }
};

}  // namespace tessera::sampling
