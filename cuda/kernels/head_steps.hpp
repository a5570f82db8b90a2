// Norm and rotation (rope) of one head. One warp computes a head, in memory that no other warp uses meanwhile. Numerics of a norm: lane l
// of the warp adds up elements l, l + 32, ... by fused multiply-adds; then warp_sum() adds the lanes' sums. Numerics of rope: the products
// are rounded before they are added, as on the CPU.
#pragma once

#include <cmath>

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/heads.hpp"

namespace tessera::cuda {

TESSERA_DEVICE void warp_head_norm(const float* weight, float eps, std::uint32_t dim, float* head) {
  float sum = 0.0f;
  for (std::uint32_t d = lane_id(); d < dim; d += kWarp) sum = fma(head[d], head[d], sum);
  const float scale = 1.0f / std::sqrt(warp_sum(sum) / static_cast<float>(dim) + eps);
  for (std::uint32_t d = lane_id(); d < dim; d += kWarp) head[d] = head[d] * scale * weight[d];
}

// Rotates a head in place. table: [pairs][cosine, sine] for the head's position.
TESSERA_DEVICE void warp_rope(const float* table, std::uint32_t pairs, RopePairs kind, float* head) {
  const std::uint32_t step = kind == RopePairs::interleaved ? 2 : 1;
  const std::uint32_t partner = kind == RopePairs::interleaved ? 1 : pairs;
  for (std::uint32_t i = lane_id(); i < pairs; i += kWarp) {
    const float cosine = table[2 * i];
    const float sine = table[2 * i + 1];
    const float a = head[i * step];
    const float b = head[i * step + partner];
    head[i * step] = a * cosine - b * sine;
    head[i * step + partner] = a * sine + b * cosine;
  }
}

}  // namespace tessera::cuda
