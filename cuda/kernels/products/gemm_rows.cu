// Kernels that prepare rows for cuBLASLt's products and finish its results.
#include <bit>

#include "core/float16.hpp"
#include "cuda/kernels/device.hpp"
#include "cuda/kernels/products/gemm_rows.hpp"

namespace tessera::cuda {

namespace {

inline constexpr unsigned kWarps = kGemmRowThreads / kWarp;

// Returns 2^exponent; the result must be a normal number.
TESSERA_DEVICE float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// Returns the exponent e of the factor 2^e for a row. `largest`: the bits of the row's largest magnitude.
TESSERA_DEVICE int factor_exponent(std::uint32_t largest) {
  if (largest == 0 || largest >= 0x7f800000u) return 0;
  const int wanted = 14 + 127 - static_cast<int>(largest >> 23);  // denormals have exponent field 0, and so get the largest factor
  return wanted > 126 ? 126 : wanted;
}

// Returns the largest value of the block's threads.
TESSERA_DEVICE std::uint32_t block_max(std::uint32_t value, std::uint32_t* shared) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::uint32_t other = shuffle_xor(value, distance);
    value = other > value ? other : value;
  }
  if (lane_id() == 0) shared[warp_id()] = value;
  sync_block();
  for (unsigned i = 0; i < kWarps; ++i) value = shared[i] > value ? shared[i] : value;
  return value;
}

}  // namespace

TESSERA_KERNEL(rows_to_half, kGemmRowThreads, NarrowRowsArgs) {
  TESSERA_SHARED std::uint32_t shared[kWarps];
  const float* in = args.in + std::size_t{blockIdx.x} * args.in_stride;
  std::uint16_t* out = args.out + std::size_t{blockIdx.x} * args.out_stride;
  std::uint32_t largest = 0;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kGemmRowThreads) {
    const std::uint32_t size = std::bit_cast<std::uint32_t>(in[i]) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
  const int exponent = factor_exponent(block_max(largest, shared));
  const float factor = power_of_two(exponent);
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kGemmRowThreads) out[i] = float_to_half(in[i] * factor);
  if (threadIdx.x == 0) args.scales[blockIdx.x] = power_of_two(-exponent);
}

TESSERA_KERNEL(rows_to_bf16, kGemmRowThreads, NarrowRowsArgs) {
  const float* in = args.in + std::size_t{blockIdx.x} * args.in_stride;
  std::uint16_t* out = args.out + std::size_t{blockIdx.x} * args.out_stride;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kGemmRowThreads) out[i] = f32_to_bf16(in[i]);
}

TESSERA_KERNEL(finish_rows, kGemmRowThreads, FinishRowsArgs) {
  const float* y = args.y + std::size_t{blockIdx.x} * args.y_stride;
  float* out = args.out + std::size_t{blockIdx.x} * args.out_stride;
  const float scale = args.scales != nullptr ? args.scales[blockIdx.x] : 1.0f;
  const std::uint32_t first = blockIdx.y * kFinishTile + threadIdx.x;
  const std::uint32_t end = first + kFinishTile < args.columns ? first + kFinishTile : args.columns;
  for (std::uint32_t i = first; i < end; i += kGemmRowThreads) {
    float value = y[i] * scale;
    if (args.bias != nullptr) value = value + args.bias[i];
    out[i] = args.store == FinishStore::add ? out[i] + value : value;
  }
}

}  // namespace tessera::cuda
