// Chooses the format of each tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/files/model_file.hpp>

#include "format_mix.hpp"

namespace tessera::quantize {

struct Options {
  tool::Target target;
  std::optional<DType> output;     // format of the output matrix (or of a tied embedding); nullopt: by the rules
  std::optional<DType> embedding;  // format of the token embedding; nullopt: by the rules
  bool requantize = false;
  std::uint32_t threads = 0;  // 0: all processors
};

struct TensorPlan {
  const GgufTensor* tensor;
  DType to;
  std::uint64_t values, bytes;  // values, and bytes in the new format
  std::string note;             // reason why `to` is not the requested format; empty if it is
};

// Returns whether a tensor should not be quantised, because small errors in it show. Position and token type embeddings are added and not
// multiplied. Routers of experts and convolutions are small, and results depend strongly on them. llama.cpp's files have these tensors as
// F32 too.
[[nodiscard]] bool is_delicate(std::string_view name) noexcept;

// Makes the plan: a step for each tensor, in file order. Error, with the tensor's name: the format of a tensor that is quantised already
// would change, and `requantize` is false.
[[nodiscard]] Result<std::vector<TensorPlan>> make_plan(const ModelSource& model, const Options& options);

}  // namespace tessera::quantize
