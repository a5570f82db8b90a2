// The layout of one recurrent layer's state in the KV cache, all f32, the same for every backend:
// 1. the inputs of the last rows, which the next convolution still sees, oldest first: [width - 1][columns]. `width`: the number of
//    positions that the convolution sees
// 2. the heads' states [keys][values], each cut into stripes of 16 values: [heads][stripes][keys][16]. A stripe is small enough to stay in
//    the CPU's first-level cache while a kernel computes all rows of a sequence
#pragma once

#include <cstdint>

namespace tessera::backend {

inline constexpr std::uint64_t kStripe = 16;        // values of a head's state side by side; lanes without a value are 0
inline constexpr std::uint32_t kMostConvolved = 16;  // tokens that a convolution sees at most

[[nodiscard]] constexpr std::uint64_t stripes_of(std::uint64_t values) noexcept { return (values + kStripe - 1) / kStripe; }

// Returns the floats of the convolution's inputs, rounded up to whole cache lines.
[[nodiscard]] constexpr std::uint64_t convolution_floats(std::uint64_t width, std::uint64_t columns) noexcept {
  return ((width - 1) * columns + 15) / 16 * 16;
}

// Returns the floats of one head's state.
[[nodiscard]] constexpr std::uint64_t head_state_floats(std::uint64_t keys, std::uint64_t values) noexcept {
  return stripes_of(values) * keys * kStripe;
}

}  // namespace tessera::backend
