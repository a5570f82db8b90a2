// Norms, sums, activation functions, and the copying of rows.
#include "cuda/kernels/elementwise.hpp"

#include "core/math_inline.hpp"
#include "cuda/kernels/device.hpp"

namespace tessera::cuda {

namespace {

inline constexpr unsigned kRowWarps = kRowThreads / kWarp;

// Returns the sum of all threads' values, in all threads. `shared` [kRowWarps] may be used again after the next barrier.
TESSERA_DEVICE float block_sum(float value, float* shared) {
  const float sum = warp_sum(value);
  if (lane_id() == 0) shared[warp_id()] = sum;
  sync_block();
  float total = shared[0];
  for (unsigned i = 1; i < kRowWarps; ++i) total = total + shared[i];
  return total;
}

TESSERA_DEVICE float silu(float v) { return v / (1.0f + math::inlined::exp(-v)); }
// GELU in the tanh form (Hendrycks and Gimpel 2016); 0.7978... = sqrt(2 / pi).
TESSERA_DEVICE float gelu_tanh(float v) {
  const float inner = 0.79788456080286535588f * (v + 0.044715f * (v * v * v));
  return 0.5f * v * (1.0f + math::inlined::tanh(inner));
}
TESSERA_DEVICE float gelu_erf(float v) {  // 0.7071... = 1 / sqrt(2)
  return 0.5f * v * (1.0f + math::inlined::erf(v * 0.70710678118654752440f));
}

}  // namespace

// RMSNorm (Zhang and Sennrich 2019).
TESSERA_KERNEL(rms_norm, kRowThreads, NormArgs) {
  TESSERA_SHARED float shared[kRowWarps];
  const std::size_t row = std::size_t{blockIdx.x} * args.columns;
  float squares = 0.0f;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {
    const float v = args.in[row + i];
    squares = fma(v, v, squares);
  }
  const float mean = block_sum(squares, shared) / static_cast<float>(args.columns);
  const float scale = 1.0f / __builtin_sqrtf(mean + args.eps);
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {
    args.out[row + i] = (args.in[row + i] * scale) * args.weight[i];
  }
}

// Layer norm (Ba, Kiros and Hinton 2016).
TESSERA_KERNEL(layer_norm, kRowThreads, NormArgs) {
  TESSERA_SHARED float shared[2][kRowWarps];
  const std::size_t row = std::size_t{blockIdx.x} * args.columns;
  float sum = 0.0f;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) sum = sum + args.in[row + i];
  const float mean = block_sum(sum, shared[0]) / static_cast<float>(args.columns);
  float squares = 0.0f;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {
    const float v = args.in[row + i] - mean;
    squares = fma(v, v, squares);
  }
  const float variance = block_sum(squares, shared[1]) / static_cast<float>(args.columns);
  const float scale = 1.0f / __builtin_sqrtf(variance + args.eps);
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {
    const float v = ((args.in[row + i] - mean) * scale) * args.weight[i];
    args.out[row + i] = args.bias != nullptr ? v + args.bias[i] : v;
  }
}

TESSERA_KERNEL(add_rows, kRowThreads, AddArgs) {
  const std::size_t row = std::size_t{blockIdx.x} * args.columns;
  const float* y = args.y + std::size_t{blockIdx.x} * args.y_stride;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) args.x[row + i] = args.x[row + i] + y[i];
}

TESSERA_KERNEL(scale_rows, kRowThreads, ScaleArgs) {
  float* x = args.x + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) x[i] = x[i] * args.factor;
}

#define TESSERA_ACTIVATION(name)                                                                              \
  TESSERA_KERNEL(activate_##name, kRowThreads, ActivateArgs) {                                                \
    const std::size_t row = std::size_t{blockIdx.x} * args.columns;                                           \
    for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {                                 \
      args.out[row + i] = name(args.in[row + i]);                                                             \
    }                                                                                                         \
  }                                                                                                           \
  TESSERA_KERNEL(activate_gated_##name, kRowThreads, ActivateArgs) {                                          \
    const std::size_t row = std::size_t{blockIdx.x} * args.columns;                                           \
    for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {                                 \
      args.out[row + i] = name(args.in[row + i]) * args.out[row + i];                                         \
    }                                                                                                         \
  }

TESSERA_ACTIVATION(silu)
TESSERA_ACTIVATION(gelu_tanh)
TESSERA_ACTIVATION(gelu_erf)

// Copies rows. grid.x: number of rows of `out`.
TESSERA_KERNEL(gather_rows, kRowThreads, GatherArgs) {
  if (args.rows[blockIdx.x] == kNoRow) return;
  const float* from = args.in + std::size_t{args.rows[blockIdx.x]} * args.columns;
  float* to = args.out + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) to[i] = from[i];
}

// Moves the wanted rows to the front, in place: `out` is `in`. grid.x: columns / 256, rounded up.
TESSERA_KERNEL(compact_rows, kRowThreads, GatherArgs) {
  const std::uint32_t column = blockIdx.x * kRowThreads + threadIdx.x;
  if (column >= args.columns) return;
  for (std::uint32_t i = 0; i < args.n_rows; ++i) {
    args.out[std::size_t{i} * args.columns + column] = args.in[std::size_t{args.rows[i]} * args.columns + column];
  }
}

}  // namespace tessera::cuda
