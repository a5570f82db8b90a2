// Kernels that unpack weights: rows of f32 for embeddings, and pieces of matrices in f16 for cuBLASLt.
#include "cuda/kernels/products/unpack.hpp"

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/products/weight_units.hpp"

namespace tessera::cuda {

namespace {

template <DeviceForm form>
TESSERA_DEVICE void unpack_rows(const UnpackRowsArgs& args) {
  constexpr std::uint32_t kUnit = form_parts(form).unit;
  const std::uint32_t index = args.indices[blockIdx.x];
  if (index == kNoRow) return;
  float* const out = args.out + std::size_t{blockIdx.x} * args.out_stride;
  for (std::uint32_t unit = threadIdx.x; unit < args.table.units(); unit += blockDim.x) {
    const UnitBits bits = load_unit<form>(args.table, index, unit);
#pragma unroll
    for (unsigned group = 0; group < kUnit / 4; ++group) {
      float values[4];
      four_decoded<form>(bits, group, values);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t k = unit * kUnit + 4 * group + i;
        if (k >= args.table.inputs) continue;
        const float value = values[i] * args.scale;
        out[k] = args.store == UnpackStore::add ? out[k] + value : value;
      }
    }
  }
}

struct alignas(16) Halves8 {
  std::uint32_t pair[4];
};

TESSERA_DEVICE std::uint32_t saturated_half(float value) {
  const float below = value > 65504.0f ? 65504.0f : value;
  return float_to_half(below < -65504.0f ? -65504.0f : below);
}

// Each thread unpacks 8 values, so that a warp writes whole cache lines. Four threads read the same unit of 32 values.
template <DeviceForm form>
TESSERA_DEVICE void unpack_half(const UnpackHalfArgs& args) {
  constexpr std::uint32_t kUnit = form_parts(form).unit;
  const std::uint32_t k = blockIdx.y * kHalfTile + threadIdx.x * 8;
  if (k >= args.weight.inputs) return;
  const UnitBits bits = load_unit<form>(args.weight, args.first + blockIdx.x, k / kUnit);
  Halves8 halves;
#pragma unroll
  for (unsigned g = 0; g < 2; ++g) {
    float values[4];
    four_decoded<form>(bits, k % kUnit / 4 + g, values);
    halves.pair[2 * g] = saturated_half(values[0]) | saturated_half(values[1]) << 16;
    halves.pair[2 * g + 1] = saturated_half(values[2]) | saturated_half(values[3]) << 16;
  }
  *reinterpret_cast<Halves8*>(args.out + std::size_t{blockIdx.x} * args.weight.inputs + k) = halves;
}

}  // namespace

#define TESSERA_UNPACK_ROWS(form) \
  TESSERA_KERNEL(unpack_rows_##form, kUnpackThreads, UnpackRowsArgs) { unpack_rows<DeviceForm::form>(args); }
#define TESSERA_UNPACK(form) \
  TESSERA_UNPACK_ROWS(form)  \
  TESSERA_KERNEL(unpack_half_##form, kUnpackThreads, UnpackHalfArgs) { unpack_half<DeviceForm::form>(args); }

TESSERA_UNPACK_ROWS(f32)
TESSERA_UNPACK_ROWS(f16)
TESSERA_UNPACK_ROWS(bf16)
TESSERA_UNPACK(block32_4)
TESSERA_UNPACK(block32_4_min)
TESSERA_UNPACK(block32_5)
TESSERA_UNPACK(block32_5_min)
TESSERA_UNPACK(block32_8)
TESSERA_UNPACK(block256_4)
TESSERA_UNPACK(block256_5)
TESSERA_UNPACK(block256_6)
TESSERA_UNPACK(open)
TESSERA_UNPACK(open_min)

}  // namespace tessera::cuda
