// The tensors of a folder that will be written, and the model's tensors from which each is made. A table's recipes say how the model's
// tensors are made from the folder's tensors; here they are used backwards. To find out where a number goes, a recipe is applied to the
// indices 0, 1, 2, ... in place of the numbers of the folder's tensor. The result says for each number of the model's tensor which index
// it has in the folder's tensor.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/extend/files/byte_sink.hpp>
#include <tessera/extend/files/model_source.hpp>

#include "hub/recipe.hpp"
#include "hub/table.hpp"
#include "hub/written/folder_shape.hpp"

namespace tessera::detail::hub {

// One of the model's tensors, or one expert's matrix of it, and its recipe.
struct WrittenPart {
  const TensorInfo* tensor = nullptr;
  std::uint64_t first = 0, values = 0;
  Recipe recipe;
};

struct WrittenTensor {
  std::string name;
  FolderDims dims;
  DType dtype = DType::f32;  // type of the folder's tensor: F32, F16 or BF16
  DType main = DType::f32;   // type that most of the folder's matrices get
  std::vector<WrittenPart> parts;
  // true: numbers are rounded to `dtype` (a quantised matrix, or a matrix whose type the caller chose).
  bool is_rounded = false;

  [[nodiscard]] std::uint64_t values() const noexcept { return dims.dims[0] * dims.dims[1] * dims.dims[2] * dims.dims[3]; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return values() * number_bytes(dtype); }
};

// Returns the folder's tensors in the order of the table: tensors of the model, then tensors of each layer. choose_types() sets their `dtype`
// later. Errors: unsupported, the model has a tensor that folders of the type do not have, or a tensor whose shape does not fit.
[[nodiscard]] Result<std::vector<WrittenTensor>> written_tensors(const ModelSource& model, const Table& table, std::uint32_t n_layers,
                                                                std::uint32_t n_further);

// Chooses the type of each tensor's numbers (WrittenTensor::dtype). Quantised matrices get the type `main`. Other tensors keep their type
// (F32, F16 or BF16), with two exceptions: if `all` is true, all matrices except routers and convolutions get `main`; small float32
// tensors get `main` if it can represent each of their numbers exactly.
[[nodiscard]] Status choose_types(const ModelSource& model, DType main, bool all, const std::stop_token& stop, std::vector<WrittenTensor>& tensors);

// Passes the bytes of a tensor to `write`. Memory: a few MB; several times the tensor's bytes if its numbers are put into another order.
// Errors: corrupt_file, the tensor's type cannot represent a number; cancelled; those of reading and of `write`.
[[nodiscard]] Status write_tensor(const ModelSource& model, const WrittenTensor& tensor, const std::stop_token& stop, const ByteSink& write);

}  // namespace tessera::detail::hub
