// Sums up the squares of what a model's matrices multiply, and writes them as llama.cpp's importance matrix: GGUF with
// general.type = imatrix, and for each tensor NAME NAME.in_sum2 [inputs, matrices] and NAME.counts [1, matrices], F32.
// (tools/quantize/importance.hpp reads one.)
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/extend/backend/input_observer.hpp>
#include <tessera/files/model_file.hpp>

#include "token_file.hpp"

namespace tessera::quality {

class InputSums final : public InputObserver {
 public:
  // Room for all matrices of the model; what is seen of others is not counted.
  explicit InputSums(const ModelFile& model);
  void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept override;

  // Tensors that saw no row are left out. `source` and `documents` say what was read.
  [[nodiscard]] Status write(const std::filesystem::path& path, const std::filesystem::path& source, const Documents& documents) const;

 private:
  struct Sums {
    std::uint64_t inputs, matrices;
    std::vector<double> squares;        // [matrices, inputs]
    std::vector<std::uint64_t> counts;  // rows  [matrices]
    [[nodiscard]] bool any() const noexcept;
  };
  std::map<std::string, Sums, std::less<>> sums_;
};

}  // namespace tessera::quality
