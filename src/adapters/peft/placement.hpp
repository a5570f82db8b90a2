// Brings the matrices A and B of a PEFT adapter into the order of the model's tensors. A and B belong to a matrix W of the model's folder.
// The library's tensor can have the numbers of W in another arrangement: rows or columns reordered, some rows selected, or transposed. To
// arrange W + B A like W, it is enough to reorder the rows of B (for rows) and the columns of A (for columns).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "adapters/adapter_file.hpp"
#include "adapters/peft/targets.hpp"
#include "hub/table.hpp"

namespace tessera::detail::adapters {

// The matrices A and B of one module, or of all experts of a parameter, in the order of the folder. F32, F16 or BF16. All experts have
// equal shapes.
struct PeftMatrices {
  std::uint64_t inputs = 0, outputs = 0, rank = 0, count = 1;
  DType dtype = DType::f32;
  std::vector<std::byte> a = {};    // [count, rank, inputs]
  std::vector<std::byte> b = {};    // [count, outputs, rank]
  std::vector<float> lengths = {};  // DoRA [outputs]; empty: none
};

// Says, for each row and each column of the model's tensor, which row of B and which column of A it comes from.
struct Placement {
  std::vector<std::uint32_t> rows = {};     // for each row of the tensor (before it is transposed): index of the row of B
  std::vector<std::uint32_t> columns = {};  // for each column of the tensor: index of the column of A; empty: the same order
  // If the arrangement transposes, it transposes matrices of some rows one by one: the number of rows of each matrix. The transpose of B A
  // is A' B' (A', B': A and B transposed), so the tensor's `a` is B transposed, and the tensor's `b` is A transposed. 0: nothing is
  // transposed.
  std::uint64_t transposed = 0;
};

// Returns the placement of a module's matrices in a tensor; nullopt if their shape does not fit the tensor.
[[nodiscard]] std::optional<Placement> place(const Target& target, const AdaptedTensor& tensor, const hub::Shape& shape, const PeftMatrices& from);

// Returns the tensor's matrices in the order of a placement. The caller sets `tensor`, `scale` and is_embedding.
[[nodiscard]] AdapterTensor arranged(const Placement& placement, const AdaptedTensor& tensor, const PeftMatrices& from);

}  // namespace tessera::detail::adapters
