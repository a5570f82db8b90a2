// Which tensor becomes which format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/files/model_file.hpp>

#include "format_mix.hpp"

namespace tessera::quantize {

struct Options {
  tool::Target target;
  std::optional<DType> output;     // the output matrix (the embedding where the two are tied), instead of the rules'
  std::optional<DType> embedding;  // the token embedding
  bool requantize = false;
  std::uint32_t threads = 0;  // 0: all processors
};

struct Step {
  const GgufTensor* tensor;
  DType to;
  std::uint64_t values, bytes;  // bytes: as it will be
  std::string note;             // why it is not the format that was asked for; empty where it is
};

// One step for each tensor, in file order. A quantised source that would change its format without `requantize` is an
// error that names the tensor.
[[nodiscard]] Result<std::vector<Step>> make_plan(const ModelFile& model, const Options& options);

}  // namespace tessera::quantize
