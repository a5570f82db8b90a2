// A draw, as a backend is asked for it. Plain data: it goes to a device as it is.
#pragma once

#include <cstdint>

#include <tessera/extend/core/sample_steps.hpp>

namespace tessera::backend {

struct SampleRow {
  std::uint32_t row = 0;  // of the activation
  SampleSteps steps;
  double uniform = 0.0;   // in [0, 1): what the draw is made of
};

}  // namespace tessera::backend
