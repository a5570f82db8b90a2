// The step between a source's tensors and what a backend packs: rows and vectors as the model has them, taken out of tensors that hold
// several, or in another order. What a format with companions (scales, zeros, an order of inputs) makes of its blocks belongs here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "core/hasher.hpp"
#include "model/load/tensor_binding.hpp"

namespace tessera::detail {

// Bytes of a matrix's row in its format.
[[nodiscard]] std::uint64_t file_row_bytes(const backend::MatrixShape& shape);
// Values of a vector, or of several alike.
[[nodiscard]] std::uint64_t vector_values(const Binding& binding) noexcept;

// A vector of any format, or a stretch of one, as f32. `hasher` gets what was read.
[[nodiscard]] Result<std::vector<float>> read_vector(const ModelSource& source, const TensorInfo& tensor, const Binding& binding,
                                                     Hasher128& hasher);
// What the products of each of a binding's matrices are multiplied by.
[[nodiscard]] Result<std::vector<float>> read_factors(const ModelSource& source, const Binding& binding, Hasher128& hasher);
// Rows of a matrix from `first` on, whose stretches may lie apart in its tensor: as many as fill `out`.
[[nodiscard]] Status read_rows(const ModelSource& source, const TensorInfo& tensor, const Binding& binding, std::uint64_t first,
                               std::span<std::byte> out);

}  // namespace tessera::detail
