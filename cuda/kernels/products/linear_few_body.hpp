// The body of all linear_few kernels (linear_few.hpp). Each warp computes four outputs of a tile of rows. The thread block copies the rows
// to shared memory, a chunk at a time. While a warp multiplies a chunk by weights, it already loads the weights of the next step.
#pragma once

#include "cuda/kernels/device.hpp"
#include "cuda/kernels/products/linear_few.hpp"
#include "cuda/kernels/products/weight_units.hpp"

namespace tessera::cuda {

struct alignas(16) Floats4 {
  float x, y, z, w;
};

// Returns values k to k + 3 of a row; zeros from n on.
TESSERA_DEVICE Floats4 load_four(const float* row, std::uint32_t k, std::uint32_t n, bool aligned) {
  if (aligned && k + 4 <= n) return *reinterpret_cast<const Floats4*>(row + k);
  return {k < n ? row[k] : 0.0f, k + 1 < n ? row[k + 1] : 0.0f, k + 2 < n ? row[k + 2] : 0.0f,
          k + 3 < n ? row[k + 3] : 0.0f};
}

// Rows lie in shared memory with gaps: after each 32 values there are 4 unused ones, so that lanes which read 4, 8, 16 or 32 values apart
// use different banks. Values are counted in groups of four. Returns where group number `four` of a row's chunk lies, gaps included.
TESSERA_DEVICE constexpr std::uint32_t staged_four(std::uint32_t four) { return four + four / 8; }

template <DeviceForm form, unsigned n_rows>
struct FewShape {
  static constexpr FormParts parts = form_parts(form);
  // at_once: how many units of each output a lane loads in one step. (A unit is the weights that 16 bytes of the quants plane hold,
  // packed_layout.hpp.) Two if `small`, otherwise one. Two units need more registers; `small` says with which forms and numbers of rows
  // (measured) a multiprocessor then still has enough registers for two blocks of 256 threads.
  static constexpr bool small = parts.bits == 0 ? n_rows <= 2 : n_rows == 1 && (parts.block == 32 || parts.bits == 4);
  static constexpr unsigned at_once = small ? 2 : 1;
  // chunk: how many values of a row are in shared memory at a time; a multiple of the values that a step multiplies. staged: how many
  // groups of four values this chunk takes in shared memory, together with the gaps (staged_four()).
  static constexpr unsigned chunk = n_rows == 1 ? 4096 : n_rows == 2 ? 2048 : 1024;
  static constexpr unsigned staged = chunk / 32 * 9;
};

// Sums each of N items over the 32 lanes, in the order of warp_sum(). Lane l returns the sum of item l * N / 32. Uses fewer shuffles than N
// calls of warp_sum(): as long as a lane has several items, it sends half of them to its partner lane, gets the partner's values of the
// other half, and goes on with this half only.
template <unsigned n, unsigned distance = 16, unsigned N>
TESSERA_DEVICE float sum_items(float (&items)[N]) {
  if constexpr (n > 1) {
    const bool upper = (lane_id() & distance) != 0;
#pragma unroll
    for (unsigned i = 0; i < n / 2; ++i) {
      const float given = upper ? items[i] : items[i + n / 2];
      const float kept = upper ? items[i + n / 2] : items[i];
      items[i] = kept + shuffle_xor(given, static_cast<int>(distance));
    }
    return sum_items<n / 2, distance / 2>(items);
  } else {
    float sum = items[0];
    for (unsigned d = distance; d > 0; d /= 2) sum = sum + shuffle_xor(sum, static_cast<int>(d));
    return sum;
  }
}

// Multiplies one unit of each of four outputs by the rows `x`, and adds the products to acc [row][output]. `first_four`: where in a row of
// x the values begin by which the unit is multiplied, counted in groups of four values.
template <DeviceForm form, unsigned n_rows>
TESSERA_DEVICE void multiply_unit(const UnitBits (&bits)[kLinearOutputs],
                                  const Floats4 (&x)[n_rows][FewShape<form, n_rows>::staged], std::uint32_t first_four,
                                  float (&acc)[n_rows * kLinearOutputs]) {
  constexpr FormParts kParts = form_parts(form);
  UnitScale scale[kLinearOutputs];
  float sum[n_rows] = {};
#pragma unroll
  for (unsigned group = 0; group < kParts.unit / 4; ++group) {
    if (group % 4 == 0 && (group == 0 || kParts.bits == 6)) {
#pragma unroll
      for (unsigned o = 0; o < kLinearOutputs; ++o) scale[o] = unit_scale<form>(bits[o], group);
    }
    Floats4 v[n_rows];
#pragma unroll
    for (unsigned r = 0; r < n_rows; ++r) {
      v[r] = x[r][staged_four(first_four + group)];
      if constexpr (kParts.has_min) sum[r] = sum[r] + v[r].x + v[r].y + v[r].z + v[r].w;
    }
#pragma unroll
    for (unsigned o = 0; o < kLinearOutputs; ++o) {
      float w[4];
      four_values<form>(bits[o], scale[o], group, w);
#pragma unroll
      for (unsigned r = 0; r < n_rows; ++r) {
        float& a = acc[r * kLinearOutputs + o];
        a = fma(w[0], v[r].x, a);
        a = fma(w[1], v[r].y, a);
        a = fma(w[2], v[r].z, a);
        a = fma(w[3], v[r].w, a);
      }
    }
  }
  if constexpr (kParts.has_min) {
#pragma unroll
    for (unsigned o = 0; o < kLinearOutputs; ++o) {
#pragma unroll
      for (unsigned r = 0; r < n_rows; ++r) {
        acc[r * kLinearOutputs + o] = fma(scale[o].addend, sum[r], acc[r * kLinearOutputs + o]);
      }
    }
  }
}

// Multiplies a tile of rows by a matrix: each warp computes kLinearOutputs outputs for all rows of the tile. `tile` (a RowTile, for
// example) says where the rows are, and where results go:
//   count                    rows of the tile, at most n_rows
//   row(r)                   address of row r
//   outputs                  outputs of the matrix
//   first_output             index, among the outputs of `weight` (which may be several matrices), of the matrix's output 0
//   put(r, output, sum)      stores the result of row r and this output
template <DeviceForm form, unsigned n_rows, class Tile>
TESSERA_DEVICE void multiply_tile(const DeviceMatrix& weight, const Tile& tile, bool aligned) {
  using Shape = FewShape<form, n_rows>;
  constexpr unsigned kUnit = form_parts(form).unit;
  constexpr unsigned kStepValues = kUnit * kWarp * Shape::at_once;
  static_assert(Shape::chunk % kStepValues == 0);
  TESSERA_SHARED Floats4 x[n_rows][Shape::staged];

  const std::uint32_t units = weight.units();
  const std::uint32_t steps = (units + kWarp * Shape::at_once - 1) / (kWarp * Shape::at_once);
  const std::uint32_t first_output = (blockIdx.y * (blockDim.x / kWarp) + warp_id()) * kLinearOutputs;

  // Loads the weights of a step. Beyond the end of the matrix, loads its last unit again; the product is not used.
  UnitBits next[Shape::at_once][kLinearOutputs];
  const auto load = [&](std::uint32_t step) {
#pragma unroll
    for (unsigned u = 0; u < Shape::at_once; ++u) {
      const std::uint32_t unit = (step * Shape::at_once + u) * kWarp + lane_id();
#pragma unroll
      for (unsigned o = 0; o < kLinearOutputs; ++o) {
        const std::uint32_t output = first_output + o;
        next[u][o] = load_unit<form>(weight, tile.first_output + (output < tile.outputs ? output : tile.outputs - 1),
                                     unit < units ? unit : units - 1);
      }
    }
  };
  // Copies the rows' next values to shared memory, from value `from` on: a whole chunk, or, at the end of a row, the values of the units
  // that are left. If the last unit goes beyond the end of a row, zeros fill it.
  const auto stage = [&](std::uint32_t from) {
    const std::uint32_t left = units * kUnit - from;
    const std::uint32_t fours = (left < Shape::chunk ? left : Shape::chunk) / 4;
    for (unsigned r = 0; r < n_rows; ++r) {
      const float* row = tile.row(r);
      const std::uint32_t n = r < tile.count ? weight.inputs : 0;
      for (std::uint32_t four = threadIdx.x; four < fours; four += blockDim.x) {
        x[r][staged_four(four)] = load_four(row, from + 4 * four, n, aligned);
      }
    }
  };

  float acc[n_rows * kLinearOutputs] = {};
  load(0);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint32_t in_chunk = step * kStepValues % Shape::chunk;
    if (in_chunk == 0) {
      if (step > 0) sync_block();
      stage(step * kStepValues);
      sync_block();
    }
    UnitBits current[Shape::at_once][kLinearOutputs];
#pragma unroll
    for (unsigned u = 0; u < Shape::at_once; ++u) {
#pragma unroll
      for (unsigned o = 0; o < kLinearOutputs; ++o) current[u][o] = next[u][o];
    }
    if (step + 1 < steps) load(step + 1);
#pragma unroll
    for (unsigned u = 0; u < Shape::at_once; ++u) {
      if ((step * Shape::at_once + u) * kWarp + lane_id() < units) {
        multiply_unit<form, n_rows>(current[u], x, (in_chunk + (u * kWarp + lane_id()) * kUnit) / 4, acc);
      }
    }
  }

  const float sum = sum_items<n_rows * kLinearOutputs>(acc);
  constexpr unsigned kLanesPerItem = kWarp / (n_rows * kLinearOutputs);
  const unsigned item = lane_id() / kLanesPerItem;
  const std::uint32_t row = item / kLinearOutputs, output = first_output + item % kLinearOutputs;
  if (lane_id() % kLanesPerItem != 0 || row >= tile.count || output >= tile.outputs) return;
  tile.put(row, output, sum);
}

// Rows [first, first + count) of a step, and one matrix.
struct RowTile {
  const LinearArgs& args;
  std::uint32_t first, count, outputs;
  static constexpr std::uint32_t first_output = 0;

  TESSERA_DEVICE RowTile(const LinearArgs& of, std::uint32_t n_rows)
      : args(of), first(blockIdx.x * n_rows), count(of.n_rows - first < n_rows ? of.n_rows - first : n_rows), outputs(of.weight.outputs) {}
  [[nodiscard]] TESSERA_DEVICE const float* row(std::uint32_t r) const { return args.x + std::size_t{first + r} * args.x_stride; }
  TESSERA_DEVICE void put(std::uint32_t r, std::uint32_t output, float sum) const {
    const float value = args.bias != nullptr ? sum + args.bias[output] : sum;
    float* const out = args.out + std::size_t{first + r} * args.out_stride + output;
    *out = args.store == LinearStore::add ? *out + value : value;
  }
};

[[nodiscard]] TESSERA_DEVICE bool are_aligned(const float* x, std::uint32_t stride) {
  return stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
}

template <DeviceForm form, unsigned n_rows>
TESSERA_DEVICE void linear_few(const LinearArgs& args) {
  multiply_tile<form, n_rows>(args.weight, RowTile(args, n_rows), are_aligned(args.x, args.x_stride));
}

}  // namespace tessera::cuda

// The kernels of a form, one for each number of rows at once.
#define TESSERA_LINEAR_FEW_ROWS(form, n) \
  TESSERA_KERNEL(linear_few_##form##_r##n, kLinearThreads, LinearArgs) { linear_few<DeviceForm::form, n>(args); }
#define TESSERA_LINEAR_FEW(form)   \
  TESSERA_LINEAR_FEW_ROWS(form, 1) \
  TESSERA_LINEAR_FEW_ROWS(form, 2) \
  TESSERA_LINEAR_FEW_ROWS(form, 4) \
  TESSERA_LINEAR_FEW_ROWS(form, 8)
