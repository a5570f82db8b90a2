// Makes importance matrices: sums the squares of the inputs of a model's matrices while the model reads a text, and writes the sums as
// llama.cpp does, to a GGUF file with general.type = imatrix. For each tensor NAME the file has the F32 tensors NAME.in_sum2 [inputs,
// matrices] and NAME.counts [1, matrices], the number of rows that were summed. (tools/quantize/importance.hpp reads the file.)
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/extend/backend/input_observer.hpp>
#include <tessera/extend/files/model_file.hpp>

#include "token_file.hpp"

namespace tessera::quality {

class InputSums final : public InputObserver {
 public:
  // Reserves memory for all matrices of the model. Inputs of other matrices are not counted.
  explicit InputSums(const ModelSource& model);
  void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept override;

  // Writes the file, without tensors that got no row. `source` and `documents`: the text that was read.
  [[nodiscard]] Status write(const std::filesystem::path& path, const std::filesystem::path& source, const Documents& documents) const;

 private:
  struct Sums {
    std::uint64_t inputs, matrices;
    std::vector<double> squares;        // [matrices, inputs]
    std::vector<std::uint64_t> counts;  // [matrices]: rows
    [[nodiscard]] bool any() const noexcept;
  };
  std::map<std::string, Sums, std::less<>> sums_;
};

}  // namespace tessera::quality
