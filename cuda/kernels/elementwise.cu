// Norms, sums, activation functions, and the copying of rows.
#include "cuda/kernels/elementwise.hpp"

#include "core/math_inline.hpp"
#include "core/math_wide.hpp"
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

// The activation functions. Gated activations compute act(gate) * side(up).
struct SideAsItIs {
  TESSERA_DEVICE static float side(float v) { return v; }
};
struct Silu : SideAsItIs {
  TESSERA_DEVICE static float of(float v) { return v / (1.0f + math::inlined::exp(-v)); }
};
struct GeluTanh : SideAsItIs {  // Hendrycks and Gimpel 2016, the tanh form; 0.7978... = sqrt(2 / pi)
  TESSERA_DEVICE static float of(float v) {
    const float inner = 0.79788456080286535588f * (v + 0.044715f * (v * v * v));
    return 0.5f * v * (1.0f + math::inlined::tanh(inner));
  }
};
struct GeluErf : SideAsItIs {  // 0.7071... = 1 / sqrt(2)
  TESSERA_DEVICE static float of(float v) { return 0.5f * v * (1.0f + math::inlined::erf(v * 0.70710678118654752440f)); }
};
struct ClampedSwiglu {  // gpt-oss's model card (OpenAI 2025)
  TESSERA_DEVICE static float of(float v) {
    const float x = math::inlined::at_most(v, 7.0f);
    return x / (1.0f + math::inlined::exp(-1.702f * x));
  }
  TESSERA_DEVICE static float side(float v) { return math::inlined::at_least(math::inlined::at_most(v, 7.0f), -7.0f) + 1.0f; }
};
struct Sigmoid : SideAsItIs {
  TESSERA_DEVICE static float of(float v) { return 1.0f / (1.0f + math::inlined::exp(-v)); }
};
struct SquaredRelu : SideAsItIs {  // So et al. 2021
  TESSERA_DEVICE static float of(float v) {
    const float positive = math::inlined::at_least(v, 0.0f);
    return positive * positive;
  }
};
struct Tanh : SideAsItIs {
  TESSERA_DEVICE static float of(float v) { return math::inlined::tanh(v); }
};

}  // namespace

// RMSNorm (Zhang and Sennrich 2019). grid.y: groups of columns, each of which is normed separately.
TESSERA_KERNEL(rms_norm, kRowThreads, NormArgs) {
  TESSERA_SHARED float shared[kRowWarps];
  const std::size_t row = (std::size_t{blockIdx.x} * gridDim.y + blockIdx.y) * args.columns;
  const float* weight = args.weight + std::size_t{blockIdx.y} * args.columns;
  float squares = 0.0f;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {
    const float v = args.in[row + i];
    squares = fma(v, v, squares);
  }
  const float mean = block_sum(squares, shared) / static_cast<float>(args.columns);
  const float scale = 1.0f / __builtin_sqrtf(mean + args.eps);
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {
    args.out[row + i] = (args.in[row + i] * scale) * weight[i];
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

TESSERA_KERNEL(softcap_rows, kRowThreads, SoftcapArgs) {
  float* x = args.x + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) x[i] = args.cap * math::inlined::tanh(x[i] / args.cap);
}

TESSERA_KERNEL(scale_by_position, kRowThreads, PositionScaleArgs) {
  const std::uint64_t times = args.positions[blockIdx.x] / args.length;
  if (times == 0) return;
  const auto factor = static_cast<float>(1.0 + args.rate * math::wide::log(1.0 + static_cast<double>(times)));
  float* x = args.x + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) x[i] = x[i] * factor;
}

TESSERA_KERNEL(weigh_rows, kRowThreads, WeighArgs) {
  const float weight = Sigmoid::of(args.gates[std::size_t{blockIdx.x} * args.gate_stride]);
  float* x = args.x + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) x[i] = x[i] * weight;
}

TESSERA_KERNEL(multiply_rows, kRowThreads, AddArgs) {
  const std::size_t row = std::size_t{blockIdx.x} * args.columns;
  const float* y = args.y + std::size_t{blockIdx.x} * args.y_stride;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) args.x[row + i] = args.x[row + i] * y[i];
}

TESSERA_KERNEL(multiply_by, kRowThreads, AddArgs) {
  float* x = args.x + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) x[i] = x[i] * *args.y;
}

TESSERA_KERNEL(take_columns, kRowThreads, TakeColumnsArgs) {
  const float* in = args.in + std::size_t{blockIdx.x} * args.in_stride + args.first;
  float* out = args.out + std::size_t{blockIdx.x} * args.columns;
  for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) out[i] = in[i];
}

#define TESSERA_ACTIVATION(name, Kind)                                                   \
  TESSERA_KERNEL(activate_##name, kRowThreads, ActivateArgs) {                           \
    const std::size_t row = std::size_t{blockIdx.x} * args.columns;                      \
    for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {            \
      args.out[row + i] = Kind::of(args.in[row + i]);                                    \
    }                                                                                    \
  }                                                                                      \
  TESSERA_KERNEL(activate_gated_##name, kRowThreads, ActivateArgs) {                     \
    const std::size_t row = std::size_t{blockIdx.x} * args.columns;                      \
    for (std::uint32_t i = threadIdx.x; i < args.columns; i += kRowThreads) {            \
      args.out[row + i] = Kind::of(args.in[row + i]) * Kind::side(args.out[row + i]);    \
    }                                                                                    \
  }

TESSERA_ACTIVATION(silu, Silu)
TESSERA_ACTIVATION(gelu_tanh, GeluTanh)
TESSERA_ACTIVATION(gelu_erf, GeluErf)
TESSERA_ACTIVATION(clamped_swiglu, ClampedSwiglu)
TESSERA_ACTIVATION(sigmoid, Sigmoid)
TESSERA_ACTIVATION(squared_relu, SquaredRelu)
TESSERA_ACTIVATION(tanh, Tanh)

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
