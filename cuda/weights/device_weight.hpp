// A weight on the device: one matrix, or several of the same shape, one after another.
#pragma once

#include <cstdint>

#include "cuda/weights/packed_layout.hpp"

namespace tessera::cuda {

struct DeviceWeight : DeviceMatrix {  // all matrices as one matrix, with the outputs of all of them
  std::uint32_t count = 1;            // matrices
  const float* factors = nullptr;     // [count]: factors of the products with each matrix, on the device; nullptr: none

  [[nodiscard]] constexpr std::uint32_t outputs_each() const noexcept { return outputs / count; }
};

}  // namespace tessera::cuda
