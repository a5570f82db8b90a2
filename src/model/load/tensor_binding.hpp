// Binds a file's tensors to the roles of a model, and checks them once: presence by the architecture's table, shape by the spec.
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

// A tensor beside another one, to whose values it belongs. To add a companion (zeros, an order of inputs): name it here, bind it in
// tensor_binding.cpp, and apply it when rows are read (weight_rows.cpp).
enum class Companion : std::uint8_t {
  factors,  // factors of a matrix's products: one number, or one for each matrix
  count
};

inline constexpr std::uint32_t kNoTensor = UINT32_MAX;

// The companions of a part: the index of each one's tensor, or kNoTensor.
struct Companions {
  std::array<std::uint32_t, static_cast<std::size_t>(Companion::count)> tensors;
  constexpr Companions() noexcept { tensors.fill(kNoTensor); }
  [[nodiscard]] std::uint32_t& operator[](Companion of) noexcept { return tensors[static_cast<std::size_t>(of)]; }
  [[nodiscard]] std::uint32_t operator[](Companion of) const noexcept { return tensors[static_cast<std::size_t>(of)]; }
  [[nodiscard]] bool has(Companion of) const noexcept { return (*this)[of] != kNoTensor; }
};

// A part of the model: a tensor, or some of its rows (a fused QKV matrix is bound three times).
struct Binding {
  Role role;
  std::uint32_t layer;      // 0 for parts that a model has once
  std::uint32_t tensor;     // index into source.tensors()
  bool is_matrix;           // false: a vector
  std::uint64_t first_row;  // the part's first row in the tensor; in a vector, its first element
  // A part whose rows alternate with other parts' has stretch_rows consecutive rows in every stretch_stride rows of the tensor. 0: all
  // rows of the part follow each other.
  std::uint64_t stretch_rows = 0, stretch_stride = 0;
  // A part that stands beside other parts in each row of the tensor begins at first_column of a row of row_inputs. 0: the part is the
  // whole row.
  std::uint64_t first_column = 0, row_inputs = 0;
  Companions companions = {};
  backend::MatrixShape shape;  // vectors: outputs 1, count the number of vectors in one
};

// Returns all parts, in the order of the file's tensors. Errors, which name the tensor: a tensor is missing, has another shape or type
// than expected, or is unknown.
[[nodiscard]] Result<std::vector<Binding>> bind_tensors(const ModelSource& source, const Architecture& table,
                                                        const ModelSpec& spec);

}  // namespace tessera::detail
