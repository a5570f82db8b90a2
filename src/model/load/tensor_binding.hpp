// Assigns each tensor of a file to its role in the model (binds it), and checks that all needed tensors are there with the expected
// shape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/model/model_spec.hpp>

#include "backend/backend.hpp"
#include "model/architecture.hpp"

namespace tessera::detail {

// The kinds of companions: tensors that are needed to compute the values of another tensor. To add a kind (zero points, or an order of
// inputs): name it here, bind it in tensor_binding.cpp, and apply it in weight_rows.cpp.
enum class Companion : std::uint8_t {
  factors,  // factors of the matrix's products: one number, or one for each matrix of the tensor
  count
};

inline constexpr std::uint32_t kNoTensor = UINT32_MAX;

// For each kind of companion, the index of the tensor in source.tensors(), or kNoTensor.
struct Companions {
  std::array<std::uint32_t, static_cast<std::size_t>(Companion::count)> tensors;
  constexpr Companions() noexcept { tensors.fill(kNoTensor); }
  [[nodiscard]] std::uint32_t& operator[](Companion of) noexcept { return tensors[static_cast<std::size_t>(of)]; }
  [[nodiscard]] std::uint32_t operator[](Companion of) const noexcept { return tensors[static_cast<std::size_t>(of)]; }
  [[nodiscard]] bool has(Companion of) const noexcept { return (*this)[of] != kNoTensor; }
};

// The part of a weight that a rank has (ranks/model_division.hpp). If the weight is divided, Binding::shape is the shape of the part.
struct OwnPart {
  bool here = true;         // false: this rank has nothing of the weight
  std::uint64_t first = 0;  // the first row of each matrix, or the first value of each vector
  std::uint64_t whole = 0;  // rows of each whole matrix, or values of each whole vector; 0: the weight is not divided
};

// One weight of the model and its place in the file: a tensor, or some rows or columns of a tensor. (A fused QKV matrix has three bindings.)
struct Binding {
  Role role;
  std::uint32_t layer;      // 0 for weights of the model (Owner::model)
  std::uint32_t tensor;     // index into source.tensors()
  bool is_matrix;           // false: a vector
  std::uint64_t first_row;  // index of the first row in the tensor; in a vector, of the first element
  // If the weight's rows alternate with rows of other weights: of every stretch_stride rows of the tensor, stretch_rows consecutive rows
  // belong to the weight. If stretch_rows is 0: all rows of the weight are consecutive.
  std::uint64_t stretch_rows = 0, stretch_stride = 0;
  // If the weight is a range of the tensor's columns: first_column is the first of them, and row_inputs is the length of the tensor's
  // rows. If row_inputs is 0: the weight has whole rows of the tensor.
  std::uint64_t first_column = 0, row_inputs = 0;
  Companions companions = {};
  backend::MatrixShape shape;  // for vectors, outputs is 1, and count is the number of vectors
  OwnPart own = {};
  bool rounds_inputs = false;  // true: ModelSource::input_rounding() says how the inputs of its products are rounded

  // Returns the shape of the whole weight.
  [[nodiscard]] backend::MatrixShape whole_shape() const noexcept {
    backend::MatrixShape whole = shape;
    if (own.whole != 0) (is_matrix ? whole.outputs : whole.inputs) = own.whole;
    return whole;
  }
};

// Returns all bindings, in the order of the file's tensors. Error (its message names the tensor): a tensor is missing, is unknown, or has
// another shape or type than expected.
[[nodiscard]] Result<std::vector<Binding>> bind_tensors(const ModelSource& source, const Architecture& table,
                                                        const ModelSpec& spec);

}  // namespace tessera::detail
