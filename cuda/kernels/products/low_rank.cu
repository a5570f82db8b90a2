// The changes that adapters make to products and tables.
#include "cuda/kernels/products/low_rank.hpp"

#include <bit>
#include <cmath>

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/elementwise.hpp"

namespace tessera::cuda {

namespace {

TESSERA_DEVICE float number_at(const std::byte* numbers, std::uint64_t i, LowRankNumber number) {
  if (number == LowRankNumber::f32) return reinterpret_cast<const float*>(numbers)[i];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(numbers)[i];
  return number == LowRankNumber::f16 ? half_to_float(bits) : std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace

TESSERA_KERNEL(low_rank_down, kLowRankThreads, LowRankDownArgs) {
  const std::uint32_t r = blockIdx.y * kLowRankWarps + warp_id();
  if (r >= args.rank) return;
  const std::uint64_t matrix = blockIdx.z;
  const float* x = args.x + std::uint64_t{args.rows[blockIdx.x]} * args.x_stride + matrix * args.inputs;
  const std::uint64_t row = ((args.shares_a != 0 ? 0 : matrix) * args.rank + r) * args.inputs;
  float sum = 0.0f;
  for (std::uint64_t k = lane_id(); k < args.inputs; k += kWarp) sum = fma(number_at(args.a, row + k, args.number), x[k], sum);
  sum = warp_sum(sum);
  if (lane_id() == 0) args.t[(matrix * gridDim.x + blockIdx.x) * args.rank + r] = args.scale * sum;
}

TESSERA_KERNEL(low_rank_tokens, kLowRankThreads, LowRankTokensArgs) {
  const std::uint32_t token = args.tokens[args.rows[blockIdx.x]];
  for (std::uint32_t r = threadIdx.x; r < args.rank; r += kLowRankThreads) {
    const bool is_there = token != kNoRow && args.scale != 0.0f;
    args.t[std::uint64_t{blockIdx.x} * args.rank + r] =
        is_there ? args.scale * number_at(args.a, std::uint64_t{token} * args.rank + r, args.number) : 0.0f;
  }
}

TESSERA_KERNEL(low_rank_up, kLowRankThreads, LowRankUpArgs) {
  const std::uint64_t matrix = blockIdx.z, output = std::uint64_t{blockIdx.y} * kLowRankThreads + threadIdx.x;
  if (output >= args.outputs) return;
  const std::uint64_t row = ((args.shares_b != 0 ? 0 : matrix) * args.outputs + output) * args.rank;
  const float* t = args.t + (matrix * gridDim.x + blockIdx.x) * args.rank;
  float sum = 0.0f;
  for (std::uint32_t r = 0; r < args.rank; ++r) sum = fma(number_at(args.b, row + r, args.number), t[r], sum);
  float& out = args.out[std::uint64_t{args.rows[blockIdx.x]} * args.out_stride + matrix * args.outputs + output];
  float changed = out + sum;
  if (args.lengths != nullptr) {
    const backend::LowRankValues::Length& length = args.lengths[matrix * args.outputs + output];
    const double square = length.base + 2.0 * args.scale * length.mixed + args.scale * args.scale * length.change;
    changed = changed * (square > 0.0 ? static_cast<float>(length.wanted / std::sqrt(square)) : 0.0f);
  }
  out = changed;
}

}  // namespace tessera::cuda
