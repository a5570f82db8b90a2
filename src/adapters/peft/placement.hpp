// Puts A and B into the order of the model's tensors. The model's tensor is made from the folder's matrix by an arrangement: its rows in another
// order, a part of them, its columns in another order, or transposed. For W + B A this is an order of B's rows and of A's columns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "adapters/adapter_file.hpp"
#include "adapters/peft/targets.hpp"
#include "hub/table.hpp"

namespace tessera::detail::adapters {

// Matrices of one module, or of all experts of a parameter: equal shapes, F32, F16 or BF16.
struct PeftMatrices {
  std::uint64_t inputs = 0, outputs = 0, rank = 0, count = 1;
  DType dtype = DType::f32;
  std::vector<std::byte> a = {};    // [count, rank, inputs]
  std::vector<std::byte> b = {};    // [count, outputs, rank]
  std::vector<float> lengths = {};  // DoRA [outputs]; empty: none
};

// The origin of each row and each column of the model's tensor.
struct Placement {
  std::vector<std::uint32_t> rows = {};     // of B [count * outputs]; as many as the tensor has (before it is transposed)
  std::vector<std::uint32_t> columns = {};  // of A [inputs]; empty: as they are
  // Not 0: the rows are matrices with this number of rows each, which are transposed: rows of B become columns of `a`, and A, transposed, `b`.
  std::uint64_t transposed = 0;
};

// Returns the placement of a module's matrices in a tensor; nullopt if their shape does not fit the tensor.
[[nodiscard]] std::optional<Placement> place(const Target& target, const AdaptedTensor& tensor, const hub::Shape& shape, const PeftMatrices& from);

// Returns the tensor's matrices in the order of a placement. `tensor`, `scale` and is_embedding are left to the caller.
[[nodiscard]] AdapterTensor arranged(const Placement& placement, const AdaptedTensor& tensor, const PeftMatrices& from);

}  // namespace tessera::detail::adapters
