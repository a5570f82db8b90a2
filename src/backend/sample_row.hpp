// A draw that a backend is to make. Plain data, which is copied to a device as it is.
#pragma once

#include <cstdint>

#include <tessera/extend/core/sample_steps.hpp>

namespace tessera::backend {

struct SampleRow {
  std::uint32_t row = 0;  // row of the logits
  SampleSteps steps;
  double uniform = 0.0;   // the draw's random number in [0, 1)
};

}  // namespace tessera::backend
