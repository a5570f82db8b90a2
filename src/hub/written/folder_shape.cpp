#include "hub/written/folder_shape.hpp"

#include "hub/arrangements.hpp"

namespace tessera::detail::hub {

namespace {

using ShapeRule = FolderDims (*)(const Shape&, const FolderDims& made);

FolderDims of(std::initializer_list<std::uint64_t> innermost_first) noexcept {
  FolderDims dims;
  for (const std::uint64_t dim : innermost_first) dims.dims[dims.n++] = dim;
  return dims;
}

FolderDims same_dims(const Shape&, const FolderDims& made) { return made; }
FolderDims swapped(const Shape&, const FolderDims& made) { return of({made.dims[1], made.dims[0]}); }
FolderDims one_row(const Shape&, const FolderDims& made) { return of({made.dims[0], 1}); }
FolderDims two_rows_more(const Shape&, const FolderDims& made) { return of({made.dims[0], made.dims[1] + 2}); }
FolderDims twice_the_rows(const Shape&, const FolderDims& made) {
  FolderDims dims = made;
  dims.dims[made.n == 1 ? 0 : 1] *= 2;
  return dims;
}
FolderDims twice_the_values(const Shape&, const FolderDims& made) {
  FolderDims dims = made;
  dims.dims[0] *= 2;
  return dims;
}
// The shape of experts' matrices as hubs have them: [inputs, outputs], with gate and up in one matrix.
FolderDims swapped_experts(const Shape&, const FolderDims& made) { return of({made.dims[1], made.dims[0], made.dims[2]}); }
FolderDims swapped_halves(const Shape&, const FolderDims& made) { return of({2 * made.dims[1], made.dims[0], made.dims[2]}); }
FolderDims expanded_keys(const Shape& shape, const FolderDims& made) {
  return of({made.dims[1], shape.heads * (shape.plain_dim + shape.head_value_dim)});
}
FolderDims expanded_values(const Shape& shape, const FolderDims& made) {
  return of({made.dims[0], shape.heads * (shape.plain_dim + shape.head_value_dim)});
}
FolderDims with_one_input(const Shape&, const FolderDims& made) { return of({made.dims[0], 1, made.dims[1]}); }
FolderDims all_in_one_row(const Shape&, const FolderDims& made) { return of({made.dims[0] * made.dims[1]}); }
FolderDims of_all_groups(const Shape& shape, const FolderDims& made) {
  return of({made.dims[0], 2 * (shape.state_groups * shape.state_keys + shape.state_heads * shape.state_values)});
}

struct ShapeRow {
  Arrange arrange;
  ShapeRule rule;
};
constexpr ShapeRow kShapes[] = {
    {query_pairs, same_dims}, {key_pairs, same_dims}, {plus_one, same_dims}, {falcon_qkv, same_dims}, {internlm_qkv, same_dims}, {decay, same_dims},
    {dealt_values, same_dims}, {dealt_heads, same_dims}, {dealt_decay, same_dims}, {dealt_mixed, same_dims}, {dealt_columns, same_dims},
    {transposed, swapped}, {flat, one_row}, {behind_padding, two_rows_more},
    {first_half, twice_the_rows}, {second_half, twice_the_rows},
    {even_values, twice_the_values}, {odd_values, twice_the_values},
    {gates_of_experts, swapped_halves}, {ups_of_experts, swapped_halves}, {downs_of_experts, swapped_experts},
    {transposed_gates, swapped_halves}, {transposed_ups, swapped_halves}, {transposed_experts, swapped_experts},
    {latent_keys, expanded_keys}, {latent_values, expanded_values},
    {convolution, with_one_input}, {dealt_convolution, with_one_input},
    {decay_column, all_in_one_row}, {column, all_in_one_row}, {norm_of_groups, all_in_one_row},
    {mixed_of_groups, of_all_groups}, {gates_of_groups, of_all_groups},
};

}  // namespace

std::optional<FolderDims> folder_dims(Arrange arrange, const Shape& shape, const FolderDims& made) noexcept {
  if (arrange == nullptr) return made;
  for (const ShapeRow& row : kShapes) {
    if (row.arrange == arrange) return row.rule(shape, made);
  }
  return std::nullopt;
}

}  // namespace tessera::detail::hub
