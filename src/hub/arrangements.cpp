#include "hub/arrangements.hpp"

#include <utility>

namespace tessera::detail::hub {

namespace {

constexpr std::uint64_t kMostHeads = 65536;  // limit, more than any model has: a recipe has a range of rows for each head

SourceMatrix& only(Recipe& recipe) { return recipe.parts.front(); }

// Sets the result's dims: a matrix with this number of rows, or a vector if the folder has a vector.
void set_rows(Recipe& recipe, std::uint64_t rows) {
  if (recipe.n_dims == 1) recipe.dims[0] = rows;
  else recipe.set_dims({only(recipe).columns, rows});
}

// Turns a vector into a matrix of one column, so that the vector's numbers can be arranged like rows. A second call changes nothing.
void as_rows(Recipe& recipe) {
  if (recipe.n_dims != 1 || only(recipe).columns == 1) return;
  only(recipe).rows = only(recipe).columns;
  only(recipe).columns = 1;
}

bool pairs_of(std::uint64_t heads, Recipe& recipe) {
  as_rows(recipe);
  const std::uint64_t rows = only(recipe).rows;
  if (heads == 0 || heads > kMostHeads || rows % (2 * heads) != 0) return false;
  const std::uint64_t dim = rows / heads;
  for (std::uint64_t head = 0; head < heads; ++head) {
    recipe.order.push_back({.rows = dim, .first = head * dim, .run = 2, .stride = 1, .step = dim / 2});
  }
  return true;
}

// Selects `count` rows of every `period` rows, from row `first` of the period on.
bool rows_of_each(Recipe& recipe, std::uint64_t period, std::uint64_t first, std::uint64_t count) {
  as_rows(recipe);
  const std::uint64_t rows = only(recipe).rows;
  if (period == 0 || rows % period != 0 || first + count > period || count == 0) return false;
  recipe.order.push_back({.rows = rows / period * count, .first = first, .run = count, .stride = period, .step = 1});
  return true;
}

bool half(Recipe& recipe, std::uint64_t which) {
  const std::uint64_t period = recipe.n_dims == 1 ? recipe.dims[0] : recipe.dims[1];
  if (period % 2 != 0 || !rows_of_each(recipe, period, which * period / 2, period / 2)) return false;
  (recipe.n_dims == 1 ? recipe.dims[0] : recipe.dims[1]) /= 2;
  return true;
}

// Transposes the experts' matrices [inputs, outputs] to [outputs, inputs], and selects every second row, from row `first` on.
bool alternate_outputs(Recipe& recipe, std::uint64_t first) {
  if (recipe.n_dims != 3) return false;
  auto [outputs, inputs, experts, unused] = recipe.dims;
  if (recipe.dtype == DType::mxfp4) std::swap(outputs, inputs);  // quantised matrices are [outputs, inputs]
  else recipe.transposed_rows = inputs;
  if (outputs % 2 != 0) return false;
  recipe.order.push_back({.rows = experts * outputs / 2, .first = first, .run = outputs / 2, .stride = outputs, .step = 2});
  recipe.set_dims({inputs, outputs / 2, experts});
  return true;
}

// Selects half of the outputs of each expert's matrix: the first half if `which` is 0, the second half if `which` is 1. The result has
// matrices [outputs / 2, inputs]. The folder's matrices are [outputs, inputs] or [inputs, outputs]; the latter are transposed. A shape
// that fits both counts as [inputs, outputs].
bool half_of_outputs(std::uint64_t inputs, Recipe& recipe, std::uint64_t which) {
  if (recipe.n_dims != 3) return false;
  const bool is_transposed = recipe.dims[0] != inputs || recipe.dims[1] == inputs;
  const std::uint64_t outputs = recipe.dims[is_transposed ? 0 : 1], experts = recipe.dims[2];
  if (outputs % 2 != 0 || recipe.dims[is_transposed ? 1 : 0] != inputs) return false;
  if (is_transposed) recipe.transposed_rows = inputs;
  recipe.order.push_back({.rows = experts * outputs / 2, .first = which * outputs / 2, .run = outputs / 2, .stride = outputs, .step = 1});
  recipe.set_dims({inputs, outputs / 2, experts});
  return true;
}

bool alternate_values(Recipe& recipe, std::uint64_t first) {
  if (recipe.n_dims != 2 || recipe.dims[0] % 2 != 0) return false;
  const std::uint64_t values = recipe.dims[0], rows = recipe.dims[1];
  only(recipe).rows = rows * values;
  only(recipe).columns = 1;
  recipe.order.push_back({.rows = rows * values / 2, .first = first, .run = rows * values / 2, .stride = 0, .step = 2});
  recipe.dims[0] /= 2;
  return true;
}

// Adds to the recipe a range of `size` rows for each value head (Qwen3.5), in the order of this library. In the folder's tensor, the
// heads begin at row `start`, and the heads of a group follow each other. In the result, the first heads of all groups come first, then
// the second heads of all groups, and so on.
bool deal(const Shape& shape, std::uint64_t start, std::uint64_t size, Recipe& recipe) {
  if (shape.state_groups == 0 || shape.state_heads > kMostHeads || shape.state_heads % shape.state_groups != 0 || size == 0) return false;
  const std::uint64_t in_group = shape.state_heads / shape.state_groups;
  if (start + shape.state_heads * size > only(recipe).rows) return false;
  for (std::uint64_t i = 0; i < in_group; ++i) {
    for (std::uint64_t group = 0; group < shape.state_groups; ++group) {
      recipe.order.push_back(RowRange::consecutive(0, start + (group * in_group + i) * size, size));
    }
  }
  return true;
}

}  // namespace

bool query_pairs(const Shape& shape, Recipe& recipe) { return pairs_of(shape.heads, recipe); }
bool key_pairs(const Shape& shape, Recipe& recipe) { return pairs_of(shape.kv_heads, recipe); }

bool plus_one(const Shape&, Recipe& recipe) {
  recipe.numbers = Numbers::plus_one;
  return true;
}

bool transposed(const Shape&, Recipe& recipe) {
  if (recipe.n_dims != 2) return false;
  recipe.transposed_rows = only(recipe).rows;
  recipe.set_dims({only(recipe).rows, only(recipe).columns});
  return true;
}

bool flat(const Shape&, Recipe& recipe) {
  recipe.set_dims({recipe.values()});
  return true;
}

bool behind_padding(const Shape&, Recipe& recipe) {
  if (recipe.n_dims != 2 || recipe.dims[1] <= 2) return false;
  recipe.order = {RowRange::consecutive(0, 2, recipe.dims[1] - 2)};
  recipe.set_dims({recipe.dims[0], recipe.dims[1] - 2});
  return true;
}

bool first_half(const Shape&, Recipe& recipe) { return half(recipe, 0); }
bool second_half(const Shape&, Recipe& recipe) { return half(recipe, 1); }

bool falcon_qkv(const Shape& shape, Recipe& recipe) {
  as_rows(recipe);
  if (shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0) return false;
  const std::uint64_t in_group = shape.heads / shape.kv_heads + 2, rows = only(recipe).rows;
  if (rows % (shape.kv_heads * in_group) != 0) return false;
  const std::uint64_t dim = rows / (shape.kv_heads * in_group);
  return rows_of_each(recipe, in_group * dim, 0, (in_group - 2) * dim) &&
         rows_of_each(recipe, in_group * dim, (in_group - 2) * dim, dim) && rows_of_each(recipe, in_group * dim, (in_group - 1) * dim, dim);
}

bool internlm_qkv(const Shape& shape, Recipe& recipe) {
  as_rows(recipe);
  if (shape.kv_heads == 0 || shape.heads > kMostHeads || shape.heads % shape.kv_heads != 0) return false;
  const std::uint64_t in_group = shape.heads / shape.kv_heads, group_heads = in_group + 2, rows = only(recipe).rows;
  if (rows % (shape.kv_heads * group_heads * 2) != 0) return false;
  const std::uint64_t dim = rows / (shape.kv_heads * group_heads);
  const auto add_pairs = [&](std::uint64_t head) { recipe.order.push_back({.rows = dim, .first = head * dim, .run = 2, .stride = 1, .step = dim / 2}); };
  for (std::uint64_t head = 0; head < shape.heads; ++head) add_pairs(head / in_group * group_heads + head % in_group);
  for (std::uint64_t group = 0; group < shape.kv_heads; ++group) add_pairs(group * group_heads + in_group);
  return rows_of_each(recipe, group_heads * dim, (group_heads - 1) * dim, dim);
}

bool transposed_experts(const Shape&, Recipe& recipe) {
  if (recipe.n_dims != 3) return false;
  if (recipe.dtype == DType::mxfp4) return true;
  const auto [outputs, inputs, experts, unused] = recipe.dims;
  recipe.transposed_rows = inputs;
  recipe.set_dims({inputs, outputs, experts});
  return true;
}

bool gates_of_experts(const Shape& shape, Recipe& recipe) { return half_of_outputs(shape.width, recipe, 0); }
bool ups_of_experts(const Shape& shape, Recipe& recipe) { return half_of_outputs(shape.width, recipe, 1); }
bool downs_of_experts(const Shape& shape, Recipe& recipe) {
  return recipe.n_dims == 3 && recipe.dims[1] == shape.width && recipe.dims[0] != shape.width ? true : transposed_experts(shape, recipe);
}
bool transposed_gates(const Shape&, Recipe& recipe) { return alternate_outputs(recipe, 0); }
bool transposed_ups(const Shape&, Recipe& recipe) { return alternate_outputs(recipe, 1); }
bool even_values(const Shape&, Recipe& recipe) { return alternate_values(recipe, 0); }
bool odd_values(const Shape&, Recipe& recipe) { return alternate_values(recipe, 1); }

bool latent_keys(const Shape& shape, Recipe& recipe) {
  const std::uint64_t rank = only(recipe).columns;
  if (!rows_of_each(recipe, shape.plain_dim + shape.head_value_dim, 0, shape.plain_dim)) return false;
  recipe.transposed_last = shape.plain_dim;
  recipe.set_dims({shape.plain_dim, rank, shape.heads});
  return only(recipe).rows == shape.heads * (shape.plain_dim + shape.head_value_dim);
}

bool latent_values(const Shape& shape, Recipe& recipe) {
  const std::uint64_t rank = only(recipe).columns;
  if (!rows_of_each(recipe, shape.plain_dim + shape.head_value_dim, shape.plain_dim, shape.head_value_dim)) return false;
  recipe.set_dims({rank, shape.head_value_dim, shape.heads});
  return only(recipe).rows == shape.heads * (shape.plain_dim + shape.head_value_dim);
}

bool convolution(const Shape&, Recipe& recipe) {
  if (recipe.n_dims == 3 && recipe.dims[1] == 1) recipe.set_dims({recipe.dims[0], recipe.dims[2]});
  return recipe.n_dims == 2;
}

bool decay(const Shape&, Recipe& recipe) {
  recipe.numbers = Numbers::minus_exponential;
  return true;
}

bool decay_column(const Shape& shape, Recipe& recipe) { return decay(shape, recipe) && column(shape, recipe); }

bool column(const Shape&, Recipe& recipe) {
  recipe.set_dims({1, recipe.values()});
  return true;
}

bool norm_of_groups(const Shape& shape, Recipe& recipe) {
  const std::uint64_t values = recipe.values();
  if (shape.state_groups == 0 || values % shape.state_groups != 0) return false;
  recipe.set_dims({values / shape.state_groups, shape.state_groups});
  return true;
}

bool dealt_values(const Shape& shape, Recipe& recipe) { return deal(shape, 0, shape.state_values, recipe); }

bool dealt_heads(const Shape& shape, Recipe& recipe) {
  as_rows(recipe);
  return deal(shape, 0, 1, recipe);
}

bool dealt_decay(const Shape& shape, Recipe& recipe) { return decay(shape, recipe) && dealt_heads(shape, recipe); }

bool dealt_mixed(const Shape& shape, Recipe& recipe) {
  const std::uint64_t keys = 2 * shape.state_groups * shape.state_keys;
  if (keys > only(recipe).rows) return false;
  recipe.order.push_back(RowRange::consecutive(0, 0, keys));
  return deal(shape, keys, shape.state_values, recipe);
}

bool dealt_convolution(const Shape& shape, Recipe& recipe) { return convolution(shape, recipe) && dealt_mixed(shape, recipe); }

bool dealt_columns(const Shape& shape, Recipe& recipe) {
  if (shape.state_groups == 0 || shape.state_heads > kMostHeads || only(recipe).columns != shape.state_heads * shape.state_values) return false;
  const std::uint64_t in_group = shape.state_heads / shape.state_groups;
  recipe.column_group = shape.state_values;
  for (std::uint64_t i = 0; i < in_group; ++i) {
    for (std::uint64_t group = 0; group < shape.state_groups; ++group) recipe.column_order.push_back(group * in_group + i);
  }
  return true;
}

namespace {

// Adds to the recipe the same rows of each group of Qwen3-Next's fused matrix: the group's rows first to first + count - 1. In the fused
// matrix, each group has the rows of its queries, keys, values and gates, in this order. Returns false if the matrix does not have this
// shape.
bool rows_of_groups(const Shape& shape, Recipe& recipe, std::uint64_t first, std::uint64_t count) {
  if (shape.state_groups == 0 || shape.state_heads % shape.state_groups != 0) return false;
  const std::uint64_t values = shape.state_heads / shape.state_groups * shape.state_values;
  const std::uint64_t period = 2 * shape.state_keys + 2 * values;
  return only(recipe).rows == shape.state_groups * period && rows_of_each(recipe, period, first, count);
}

}  // namespace

bool mixed_of_groups(const Shape& shape, Recipe& recipe) {
  if (shape.state_groups == 0) return false;
  const std::uint64_t keys = shape.state_keys, values = shape.state_heads / shape.state_groups * shape.state_values;
  set_rows(recipe, shape.state_groups * (2 * keys + values));
  return rows_of_groups(shape, recipe, 0, keys) && rows_of_groups(shape, recipe, keys, keys) && rows_of_groups(shape, recipe, 2 * keys, values);
}

bool gates_of_groups(const Shape& shape, Recipe& recipe) {
  if (shape.state_groups == 0) return false;
  const std::uint64_t values = shape.state_heads / shape.state_groups * shape.state_values;
  set_rows(recipe, shape.state_groups * values);
  return rows_of_groups(shape, recipe, 2 * shape.state_keys + values, values);
}

}  // namespace tessera::detail::hub
