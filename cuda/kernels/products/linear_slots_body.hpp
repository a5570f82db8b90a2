// The body of all linear_slots kernels (linear_slots.hpp). It calls the body of linear_few, with a tile of slots in place of a tile of
// rows.
#pragma once

#include "cuda/kernels/products/linear_few_body.hpp"
#include "cuda/kernels/products/linear_slots.hpp"

namespace tessera::cuda {

// Slots that have the same matrix.
struct SlotRows {
  const LinearSlotsArgs& args;
  std::uint32_t matrix = 0, first = 0, count = 0, outputs = 0, first_output = 0;

  TESSERA_DEVICE SlotRows(const LinearSlotsArgs& of, std::uint32_t n_rows) : args(of), outputs(of.outputs) {
    if (of.tiles == nullptr) {
      matrix = blockIdx.x % of.matrices;
      first = blockIdx.x / of.matrices * n_rows;
      count = of.n_rows - first < n_rows ? of.n_rows - first : n_rows;
    } else if (blockIdx.x < *of.n_tiles) {
      const SlotTile tile = of.tiles[blockIdx.x];
      matrix = tile.matrix;
      first = tile.first;
      count = tile.count;
    }
    first_output = matrix * of.outputs;
  }
  // Returns slot r of the tile; for r from `count` on, the tile's first slot.
  [[nodiscard]] TESSERA_DEVICE std::uint32_t slot(std::uint32_t r) const {
    const std::uint32_t at = first + (r < count ? r : 0);
    return args.tiles == nullptr ? at * args.matrices + matrix : args.slots[at];
  }
  [[nodiscard]] TESSERA_DEVICE const float* row(std::uint32_t r) const {
    return args.x + std::size_t{slot(r) / args.sharing} * args.x_stride;
  }
  TESSERA_DEVICE void put(std::uint32_t r, std::uint32_t output, float sum) const {
    if (args.factors != nullptr) sum = sum * args.factors[matrix];
    if (args.bias != nullptr) sum = sum + args.bias[first_output + output];
    args.out[std::size_t{slot(r)} * outputs + output] = sum;
  }
};

template <DeviceForm form, unsigned n_rows>
TESSERA_DEVICE void linear_slots(const LinearSlotsArgs& args) {
  const SlotRows rows(args, n_rows);
  if (rows.count == 0) return;  // true for all threads of the block
  multiply_tile<form, n_rows>(args.weight, rows, are_aligned(args.x, args.x_stride));
}

}  // namespace tessera::cuda

#define TESSERA_LINEAR_SLOTS_ROWS(form, n) \
  TESSERA_KERNEL(linear_slots_##form##_r##n, kLinearThreads, LinearSlotsArgs) { linear_slots<DeviceForm::form, n>(args); }
#define TESSERA_LINEAR_SLOTS(form)   \
  TESSERA_LINEAR_SLOTS_ROWS(form, 1) \
  TESSERA_LINEAR_SLOTS_ROWS(form, 4)
