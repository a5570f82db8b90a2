// Which tensor of a file plays which part, checked once: presence by the architecture's table, shape by the spec.
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

// What stands beside a tensor and belongs to its values. A kind of file that has another (zeros, an order of inputs) names it here,
// binds it in tensor_binding.cpp, and applies it when rows are read (weight_rows.cpp).
enum class Companion : std::uint8_t {
  factors,  // what a matrix's products are multiplied by: one number, or one a matrix
  count
};

inline constexpr std::uint32_t kNoTensor = UINT32_MAX;

// Of a part of the model: index of the tensor that is each companion, or kNoTensor.
struct Companions {
  std::array<std::uint32_t, static_cast<std::size_t>(Companion::count)> tensors;
  constexpr Companions() noexcept { tensors.fill(kNoTensor); }
  [[nodiscard]] std::uint32_t& operator[](Companion of) noexcept { return tensors[static_cast<std::size_t>(of)]; }
  [[nodiscard]] std::uint32_t operator[](Companion of) const noexcept { return tensors[static_cast<std::size_t>(of)]; }
  [[nodiscard]] bool has(Companion of) const noexcept { return (*this)[of] != kNoTensor; }
};

// A part of the model: a tensor, or some rows of one (a fused QKV matrix is bound three times).
struct Binding {
  Role role;
  std::uint32_t layer;      // 0 for parts that exist once
  std::uint32_t tensor;     // index into source.tensors()
  bool is_matrix;           // else a vector
  std::uint64_t first_row;  // of a vector: element
  // Of a part whose rows alternate with other parts': so many of its rows follow each other, from so many to so many rows of the file.
  std::uint64_t stretch_rows = 0, stretch_stride = 0;  // 0: all of them do
  // Of a part that stands beside others in each row of the file: where it begins, and the whole row's inputs.
  std::uint64_t first_column = 0, row_inputs = 0;  // 0: it is the whole row
  Companions companions = {};
  backend::MatrixShape shape;  // of a vector: outputs 1; of several: so many of them
};

// All parts in the order of the file's tensors. A missing, misshapen or unknown tensor is an error that names it.
[[nodiscard]] Result<std::vector<Binding>> bind_tensors(const ModelSource& source, const Architecture& table,
                                                        const ModelSpec& spec);

}  // namespace tessera::detail
