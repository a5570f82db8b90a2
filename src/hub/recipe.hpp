// A recipe says how one tensor of the model is made from tensors of the folder. Hubs and this library have the same weights in different
// arrangements: rows in another order, several matrices in one tensor, one matrix in several tensors, or numbers to which 1 was added.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

#include "hub/matrix.hpp"

namespace tessera::detail::hub {

// A change of each number. Numbers that change become float32.
enum class Numbers : std::uint8_t {
  same,
  widened,               // x, as float32: routers of experts, because the choice of experts depends on small differences
  plus_one,              // x + 1: norms that multiply by 1 + weight
  minus_exponential,     // -e^x: rates of decay, which hubs keep as their logarithm
};

// A range of rows of the result that are copied from one part (a matrix of the folder), and where in the part these rows are. `part`:
// index of the part; `rows`: rows of the range; `first`: the part's row that becomes row 0 of the range. The range consists of runs of
// `run` rows. From one row of a run to the next there are `step` rows in the part, and from the first row of a run to the first row of
// the next run there are `stride` rows. So row i of the range is the part's row first + (i / run) * stride + (i % run) * step.
struct RowRange {
  std::uint32_t part = 0;
  std::uint64_t rows = 0;
  std::uint64_t first = 0;
  std::uint64_t run = 1, stride = 1, step = 1;

  // Returns a range of consecutive rows.
  [[nodiscard]] static RowRange consecutive(std::uint32_t part, std::uint64_t first, std::uint64_t rows) noexcept {
    return {.part = part, .rows = rows, .first = first, .run = rows, .stride = 0, .step = 1};
  }
};

// One matrix of the folder, as a list of rows: a row is the innermost dimension.
struct SourceMatrix {
  std::shared_ptr<const Matrix> matrix;
  std::uint64_t rows = 0, columns = 0;
};

struct Recipe {
  std::vector<SourceMatrix> parts = {};
  DType dtype = DType::f32;                          // type of the parts, and of the result if `numbers` is `same`
  std::uint32_t n_dims = 0;                          // dimensions of the result
  std::array<std::uint64_t, 4> dims = {1, 1, 1, 1};  // dims of the result, innermost first
  std::vector<RowRange> order = {};                  // empty: all rows of the first part, then all rows of the second, ...
  // Not 0: each part is a list of matrices of this number of rows. All of these matrices are transposed before `order` is applied.
  std::uint64_t transposed_rows = 0;
  // Not 0: the ordered rows are a list of matrices of this number of rows. All of these matrices are transposed at the end.
  std::uint64_t transposed_last = 0;
  std::vector<std::uint64_t> column_order = {};  // not empty: groups of `column_group` columns, in the order in which the result has them
  std::uint64_t column_group = 1;
  Numbers numbers = Numbers::same;
  std::vector<float> constants = {};  // the result, if it has no parts

  // Returns whether every row of the result is a row of a part, so that rows can be read without making the whole result.
  [[nodiscard]] bool copies_rows() const noexcept {
    return !parts.empty() && transposed_rows == 0 && transposed_last == 0 && column_order.empty() && numbers == Numbers::same;
  }
  [[nodiscard]] std::uint64_t values() const noexcept { return dims[0] * dims[1] * dims[2] * dims[3]; }

  void set_dims(std::initializer_list<std::uint64_t> innermost_first) noexcept {
    n_dims = 0;
    dims = {1, 1, 1, 1};
    for (const std::uint64_t dim : innermost_first) dims[n_dims++] = dim;
  }
};

// Returns whether a recipe is sound: it uses only rows and columns that its parts have, and makes exactly as many values as its dims say.
// Check this before a recipe from a folder is used: its shape comes from the weights' file and its arrangement from config.json, and the
// two may contradict each other.
[[nodiscard]] bool is_sound(const Recipe& recipe) noexcept;

// Computes the whole result of a sound recipe from the bytes of its parts. `parts` has the order of Recipe::parts.
[[nodiscard]] std::vector<std::byte> make_whole(const Recipe& recipe, std::vector<std::vector<std::byte>> parts);

// Returns whether a format stores one number after another, so that numbers can be arranged one by one.
[[nodiscard]] constexpr bool has_single_numbers(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}
// Returns the bytes of a number in a format with single numbers: 2 or 4.
[[nodiscard]] constexpr std::uint64_t number_bytes(DType dtype) noexcept { return dtype == DType::f32 ? 4 : 2; }
// Returns the bytes of `values` values in a format. Precondition: the values are whole blocks of the format.
[[nodiscard]] std::uint64_t bytes_of_values(DType dtype, std::uint64_t values) noexcept;

}  // namespace tessera::detail::hub
