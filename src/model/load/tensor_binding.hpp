// Which tensor of a file plays which part, checked once: presence by the architecture's table, shape by the spec.
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/extend/model/model_spec.hpp>
#include <tessera/files/model_file.hpp>

#include "backend/backend.hpp"
#include "model/architecture.hpp"

namespace tessera::detail {

inline constexpr std::uint32_t kNoFactors = UINT32_MAX;

// A part of the model: a tensor, or some rows of one (a fused QKV matrix is bound three times).
struct Binding {
  Role role;
  std::uint32_t layer;      // 0 for parts that exist once
  std::uint32_t tensor;     // index into file.tensors()
  bool is_matrix;           // else a vector
  std::uint64_t first_row;  // of a vector: element
  // Of a part whose rows alternate with other parts': so many of its rows follow each other, from so many to so many rows of the file.
  std::uint64_t stretch_rows = 0, stretch_stride = 0;  // 0: all of them do
  // Of a part that stands beside others in each row of the file: where it begins, and the whole row's inputs.
  std::uint64_t first_column = 0, row_inputs = 0;  // 0: it is the whole row
  std::uint32_t factors = kNoFactors;  // index of the tensor with what its products are multiplied by: one number, or one a matrix
  backend::MatrixShape shape;  // of a vector: outputs 1; of several: so many of them
};

// All parts in the order of the file's tensors. A missing, misshapen or unknown tensor is an error that names it.
[[nodiscard]] Result<std::vector<Binding>> bind_tensors(const ModelFile& file, const Architecture& table,
                                                        const ModelSpec& spec);

}  // namespace tessera::detail
