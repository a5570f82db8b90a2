// An importance matrix: how large the inputs of each matrix are, for encoders that search. The file is llama.cpp's: GGUF
// with general.type = imatrix, and for each tensor NAME of a model NAME.in_sum2, sums of squares of each input
// [inputs, matrices], and NAME.counts, over how many rows [1, matrices]. (tools/quality/imatrix.hpp writes one.)
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/files/model_file.hpp>

namespace tessera::quantize {

class Importance {
 public:
  Importance() = default;  // of nothing
  // Errors: a file that is none, is damaged, or belongs to another model: a tensor that the model has not, or of another
  // width or number of experts.
  [[nodiscard]] static Result<Importance> read(const std::filesystem::path& path, const ModelFile& model);

  // Means of squares of a tensor's inputs  [matrices, inputs]; nullptr: not known. An expert that no row took has zeros.
  [[nodiscard]] const std::vector<float>* of(std::string_view tensor) const;
  [[nodiscard]] bool empty() const noexcept { return means_.empty(); }

 private:
  std::map<std::string, std::vector<float>, std::less<>> means_;
};

}  // namespace tessera::quantize
