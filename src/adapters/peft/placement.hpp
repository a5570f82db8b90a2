// Puts A and B into the order of the model's tensors. An arrangement makes the model's tensor from the folder's matrix W: it reorders rows or
// columns, selects some rows, or transposes. For W + B A this means an order of B's rows and an order of A's columns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "adapters/adapter_file.hpp"
#include "adapters/peft/targets.hpp"
#include "hub/table.hpp"

namespace tessera::detail::adapters {

// The matrices of one module, or of all experts of a parameter: F32, F16 or BF16, of equal shapes.
struct PeftMatrices {
  std::uint64_t inputs = 0, outputs = 0, rank = 0, count = 1;
  DType dtype = DType::f32;
  std::vector<std::byte> a = {};    // [count, rank, inputs]
  std::vector<std::byte> b = {};    // [count, outputs, rank]
  std::vector<float> lengths = {};  // DoRA [outputs]; empty: none
};

// The origin of each row and each column of the model's tensor.
struct Placement {
  std::vector<std::uint32_t> rows = {};     // for each row of the tensor (before it is transposed): index of the row of B
  std::vector<std::uint32_t> columns = {};  // for each column of the tensor: index of the column of A; empty: the same order
  // Number of rows of each matrix, if the rows form matrices that are transposed one by one. Then the tensor's `a` is B transposed, and the
  // tensor's `b` is A transposed. 0: nothing is transposed.
  std::uint64_t transposed = 0;
};

// Returns the placement of a module's matrices in a tensor; nullopt if their shape does not fit the tensor.
[[nodiscard]] std::optional<Placement> place(const Target& target, const AdaptedTensor& tensor, const hub::Shape& shape, const PeftMatrices& from);

// Returns the tensor's matrices in the order of a placement. The caller sets `tensor`, `scale` and is_embedding.
[[nodiscard]] AdapterTensor arranged(const Placement& placement, const AdaptedTensor& tensor, const PeftMatrices& from);

}  // namespace tessera::detail::adapters
