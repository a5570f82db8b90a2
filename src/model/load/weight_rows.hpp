// Reads a model's rows and vectors out of a source's tensors, which may hold several parts or have them in another order, for a backend to
// pack. A format with companions (scales, zeros, an order of inputs) applies them to its blocks here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "core/hasher.hpp"
#include "model/load/tensor_binding.hpp"

namespace tessera::detail {

// Returns the bytes of a matrix's row in its format.
[[nodiscard]] std::uint64_t file_row_bytes(const backend::MatrixShape& shape);
// Returns the number of values of a vector, or of the equal vectors of one part.
[[nodiscard]] std::uint64_t vector_values(const Binding& binding) noexcept;

// Reads a vector of any format, or a stretch of one, as f32. Adds the tensor's bytes to `hasher`.
[[nodiscard]] Result<std::vector<float>> read_vector(const ModelSource& source, const TensorInfo& tensor, const Binding& binding,
                                                     Hasher128& hasher);
// Reads the factors of products, one for each matrix of the binding. Adds the bytes to `hasher`.
[[nodiscard]] Result<std::vector<float>> read_factors(const ModelSource& source, const Binding& binding, Hasher128& hasher);
// Fills `out` with rows of a matrix from row `first` on. The matrix's stretches may lie apart in its tensor.
[[nodiscard]] Status read_rows(const ModelSource& source, const TensorInfo& tensor, const Binding& binding, std::uint64_t first,
                               std::span<std::byte> out);

}  // namespace tessera::detail
