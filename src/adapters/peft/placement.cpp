#include "adapters/peft/placement.hpp"

#include <algorithm>
#include <cstring>

#include "adapters/adapter_builder.hpp"

namespace tessera::detail::adapters {

namespace {

using hub::Recipe;
using hub::RowRange;

// Returns the recipe that makes the model's tensor from the folder's matrix W. `is_flipped`: true if W is [inputs, outputs], false if W is
// [outputs, inputs]. Returns nullopt if the shape is wrong: the arrangement of `target.row` refuses it, or its result does not have the
// tensor's shape.
std::optional<Recipe> arrange_weights(const Target& target, const AdaptedTensor& tensor, const hub::Shape& shape, const PeftMatrices& from,
                                      bool is_flipped) {
  const std::uint64_t columns = is_flipped ? from.outputs : from.inputs, rows = is_flipped ? from.inputs : from.outputs;
  Recipe recipe;
  recipe.parts.push_back({.matrix = nullptr, .rows = rows * from.count, .columns = columns});
  if (from.count > 1) {
    recipe.set_dims({columns, rows, from.count});
  }
  else {
    recipe.set_dims({columns, rows});
  }
  if (target.row->arrange != nullptr && !target.row->arrange(shape, recipe)) return std::nullopt;
  if (!is_sound(recipe) || (recipe.numbers != hub::Numbers::same && recipe.numbers != hub::Numbers::widened)) return std::nullopt;
  const std::uint64_t outputs = recipe.dims[1] * recipe.dims[2];
  const bool fits =
      recipe.dims[0] == tensor.inputs && (target.is_part ? target.first_row + tensor.outputs <= outputs : outputs == tensor.outputs * tensor.count);
  // An arrangement that transposes W needs a flipped W; any other arrangement needs a W that is not flipped. The shape alone does not tell,
  // because a square W has the right shape in both cases.
  if (!fits || (recipe.transposed_rows != 0) != is_flipped) return std::nullopt;
  return recipe;
}

std::vector<std::uint32_t> rows_of(const Recipe& recipe, std::uint64_t rows) {
  std::vector<std::uint32_t> list;
  if (recipe.order.empty()) {
    list.resize(rows);
    for (std::uint32_t i = 0; i < list.size(); ++i) list[i] = i;
    return list;
  }
  for (const RowRange& range : recipe.order) {
    for (std::uint64_t i = 0; i < range.rows; ++i) {
      list.push_back(static_cast<std::uint32_t>(range.first + i / range.run * range.stride + i % range.run * range.step));
    }
  }
  return list;
}

std::vector<std::uint32_t> columns_of(const Recipe& recipe) {
  std::vector<std::uint32_t> list;
  for (const std::uint64_t group : recipe.column_order) {
    for (std::uint64_t i = 0; i < recipe.column_group; ++i) list.push_back(static_cast<std::uint32_t>(group * recipe.column_group + i));
  }
  return list;
}

// Transposes each matrix of a list [count, rows, columns]. `size`: bytes of a number.
std::vector<std::byte> each_transposed(const std::vector<std::byte>& from, std::uint64_t count, std::uint64_t rows, std::uint64_t columns,
                                       std::uint64_t size) {
  std::vector<std::byte> out(from.size());
  for (std::uint64_t m = 0; m < count; ++m) {
    const std::uint64_t start = m * rows * columns * size;
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (std::uint64_t c = 0; c < columns; ++c) std::memcpy(&out[start + (c * rows + r) * size], &from[start + (r * columns + c) * size], size);
    }
  }
  return out;
}

}  // namespace

std::optional<Placement> place(const Target& target, const AdaptedTensor& tensor, const hub::Shape& shape, const PeftMatrices& from) {
  auto recipe = arrange_weights(target, tensor, shape, from, false);
  if (!recipe) recipe = arrange_weights(target, tensor, shape, from, true);
  if (!recipe) return std::nullopt;
  Placement placement{.rows = rows_of(*recipe, from.outputs * from.count), .columns = columns_of(*recipe), .transposed = recipe->transposed_last};
  if (target.is_part) {
    placement.rows.erase(placement.rows.begin(), placement.rows.begin() + static_cast<std::ptrdiff_t>(target.first_row));
    placement.rows.resize(tensor.outputs);
  }
  return placement;
}

AdapterTensor arranged(const Placement& placement, const AdaptedTensor& tensor, const PeftMatrices& from) {
  const std::uint64_t size = bytes_of_number(from.dtype), row = from.rank * size;
  AdapterTensor made{.rank = static_cast<std::uint32_t>(from.rank), .dtype = from.dtype, .a_count = from.count};
  made.b.resize(placement.rows.size() * row);
  for (std::size_t i = 0; i < placement.rows.size(); ++i) std::memcpy(&made.b[i * row], &from.b[placement.rows[i] * row], row);
  if (!from.lengths.empty()) {
    for (const std::uint32_t own : placement.rows) made.lengths.push_back(from.lengths[own]);
  }
  made.a = from.a;
  if (!placement.columns.empty()) {
    for (std::uint64_t r = 0; r < from.count * from.rank; ++r) {
      for (std::uint64_t i = 0; i < from.inputs; ++i) {
        std::memcpy(&made.a[(r * from.inputs + i) * size], &from.a[(r * from.inputs + placement.columns[i]) * size], size);
      }
    }
  }
  made.b_count = tensor.count;
  if (placement.transposed != 0) {  // (B A)^T = A^T B^T
    std::swap(made.a, made.b);
    made.a = each_transposed(made.a, tensor.count, placement.transposed, from.rank, size);
    made.b = each_transposed(made.b, from.count, from.rank, from.inputs, size);
    made.a_count = tensor.count;
    made.b_count = from.count;
  }
  return made;
}

}  // namespace tessera::detail::adapters
