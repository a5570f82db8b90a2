// Which tensor becomes which format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>
#include <tessera/io/model_file.hpp>

namespace tessera::quantize {

struct Options {
  DType format = DType::q8_0;
  std::optional<DType> output;     // the output matrix (the embedding where the two are tied); see default_output()
  std::optional<DType> embedding;  // the token embedding
  bool requantize = false;
  unsigned threads = 1;
};

struct Step {
  const GgufTensor* tensor;
  DType to;
  std::uint64_t values, bytes;  // bytes: as it will be
  std::string note;             // why it is not the format that was asked for; empty where it is
};

// "q4_k" as its DType; nullopt for what is not a weight format. Names as people write them: any case, Q4_K_S for Q4_K.
[[nodiscard]] std::optional<DType> parse_format(std::string_view name);
// What the output matrix becomes unless --output-type says otherwise: it touches every logit, so below 8 bits a value
// it gets Q6_K, as in files of llama.cpp.
[[nodiscard]] DType default_output(DType format);
// general.file_type, llama.cpp's number of a whole file's format.
[[nodiscard]] std::uint32_t file_type(DType format);

// One step for each tensor, in file order. A quantised source that would change its format without `requantize` is an
// error that names the tensor.
[[nodiscard]] Result<std::vector<Step>> make_plan(const ModelFile& model, const Options& options);

}  // namespace tessera::quantize
