// Reads the weights of a binding from a source's tensor, so that a backend can pack them: rows of a matrix, or a vector. Picks the
// weight's own rows or columns, because a tensor may hold several weights, or alternate their rows. Also reads the companions of a weight
// (now only factors).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "core/hasher.hpp"
#include "model/load/tensor_binding.hpp"

namespace tessera::detail {

// Returns how many bytes of the file one row of the matrix takes.
[[nodiscard]] std::uint64_t file_row_bytes(const backend::MatrixShape& shape);
// Returns the number of values of a vector, or of this rank's part of the vector. If the binding has several vectors, counts all vectors.
[[nodiscard]] std::uint64_t vector_values(const Binding& binding) noexcept;

// Reads the binding's vector from a tensor in any format, and returns its values as f32. Other vectors of the tensor are not returned. If
// the vector is divided among ranks, only this rank's part is returned. Adds all bytes of the tensor to `hasher`.
[[nodiscard]] Result<std::vector<float>> read_vector(const ModelSource& source, const TensorInfo& tensor, const Binding& binding,
                                                     Hasher128& hasher);
// Reads the factors by which the products of the binding's matrices are multiplied, and returns one for each matrix. Adds the factors' bytes
// in the file to `hasher`. Precondition: the binding has the companion Companion::factors.
[[nodiscard]] Result<std::vector<float>> read_factors(const ModelSource& source, const Binding& binding, Hasher128& hasher);
// Fills `out` with rows of the binding's whole matrix, beginning with row `first`. In the tensor, these rows need not be consecutive.
[[nodiscard]] Status read_rows(const ModelSource& source, const TensorInfo& tensor, const Binding& binding, std::uint64_t first,
                               std::span<std::byte> out);

}  // namespace tessera::detail
