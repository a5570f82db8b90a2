// An importance matrix: for each input of each matrix, the mean square of its values on some text. Encoders that search for the best scales
// weigh rounding errors by these numbers. The file has llama.cpp's form, a GGUF file with general.type = imatrix: for each tensor NAME of a
// model the sums of the squares of each input, NAME.in_sum2 [inputs, matrices], and the number of rows that were summed, NAME.counts [1,
// matrices]. (tools/quality/imatrix.hpp writes the file.)
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/extend/files/model_file.hpp>

namespace tessera::quantize {

class Importance {
 public:
  Importance() = default;  // an empty matrix
  // Reads a file. Errors: the file is not an importance matrix, is damaged, or belongs to another model (it names a tensor that the model
  // does not have, or a tensor with another width or number of experts).
  [[nodiscard]] static Result<Importance> read(const std::filesystem::path& path, const ModelSource& model);

  // Returns the mean squares of a tensor's inputs [matrices, inputs]; nullptr if they are not known. An expert without rows has zeros.
  [[nodiscard]] const std::vector<float>* of(std::string_view tensor) const;
  [[nodiscard]] bool empty() const noexcept { return means_.empty(); }

 private:
  std::map<std::string, std::vector<float>, std::less<>> means_;
};

}  // namespace tessera::quantize
