// A product of some rows by a weight matrix, cut into tasks. Several products are computed together, as one piece of parallel work.
// Included only by the CPU backend's sources.
#pragma once

#include <algorithm>
#include <cstddef>

#include "cpu/kernels.hpp"
#include "cpu/products/packed_matrix.hpp"

namespace tessera::cpu {

// A product of few rows is cut into about this many items (Cut) for each slot (thread). A slot takes its own items one after another, and
// then items of a slower slot, so that threads of unequal speed end together.
inline constexpr std::size_t kPiecesFew = 32;

// Rows of a task of head_linear(): a multiple of a tile's rows, and few enough that the prepared rows fit a task's scratch.
inline constexpr std::size_t kHeadRows = 32;

[[nodiscard]] constexpr std::size_t divide_up(std::size_t n, std::size_t by) noexcept { return (n + by - 1) / by; }

// The cut of a product into items. An item multiplies one block of rows by one group of panels. Items are ordered by block of rows and
// then by group of panels, so that a block's activations stay in the cache.
struct Cut {
  std::size_t rows, row_blocks;  // rows of a block, number of blocks
  std::size_t panels, groups;    // panels of a group, number of groups

  Cut() = default;
  // `most_panels`: the number of panels that determines the size of an item. All products that are computed at the same time get the same
  // number: the panels of the largest product or, for experts, the panels of all products together. If smaller products had smaller items,
  // some threads would have less to read than others.
  Cut(const Linear& kernel, std::size_t n_rows, std::size_t n_panels, std::size_t most_panels,
      std::size_t slots) noexcept {
    rows = RowCut(kernel, n_rows).task;
    row_blocks = divide_up(n_rows, rows);
    const std::size_t shared = most_panels / (kPiecesFew * slots) / kernel.panels * kernel.panels;
    panels = row_blocks > 1 ? kernel.panels : std::max(kernel.panels, shared);
    groups = divide_up(n_panels, panels);
  }

  [[nodiscard]] std::size_t items() const noexcept { return row_blocks * groups; }
};

struct Product {
  const Linear* kernel = nullptr;
  const backend::Matrix* weight = nullptr;
  const std::byte* packed = nullptr;  // the matrix to use, if `weight` holds several
  const std::byte* x = nullptr;       // `rows` prepared rows of x_stride bytes each, in groups of `group` rows (prepared_rows.hpp)
  std::size_t x_stride = 0, group = 1, rows = 0;
  float factor = 1.0f;          // multiplies the outputs
  float* out = nullptr;         // [rows, outputs]
  const float* bias = nullptr;  // [outputs], which each task adds to the outputs that it computes; or null
  float* residual = nullptr;    // [rows, outputs], to which each task then adds its outputs; or null
  Cut cut;
  std::size_t first = 0;  // index of the product's first item among all items
  Ahead ahead;

  void run(std::size_t item, std::byte* scratch, const Elementwise& ops) const noexcept {
    const std::size_t inputs = weight->shape.inputs, outputs = weight->shape.outputs;
    const std::size_t bytes = panel_bytes(weight->form, inputs), panel_columns = panel_outputs(weight->form);
    const std::size_t row = item / cut.groups * cut.rows, panel = item % cut.groups * cut.panels;
    const std::size_t column = panel * panel_columns;
    const std::size_t columns = std::min(cut.panels * panel_columns, outputs - column);
    const std::size_t n = std::min(cut.rows, rows - row);
    kernel->run({.weights = packed + panel * bytes,
                 .panel_bytes = bytes,
                 .panels = std::min<std::size_t>(cut.panels, panels_of(weight->shape) - panel),
                 .inputs = inputs,
                 .outputs = columns,
                 .x = x + row * x_stride,
                 .x_stride = x_stride,
                 .group = group,
                 .rows = n,
                 .out = out + row * outputs + column,
                 .out_stride = outputs,
                 .scratch = scratch,
                 .ahead = ahead});
    for (std::size_t r = row; r < row + n; ++r) {
      float* at = out + r * outputs + column;
      if (factor != 1.0f) {
        for (std::size_t i = 0; i < columns; ++i) at[i] *= factor;
      }
      if (bias != nullptr) ops.add(bias + column, columns, at);
      if (residual != nullptr) ops.add(at, columns, residual + r * outputs + column);
    }
  }
};

}  // namespace tessera::cpu
