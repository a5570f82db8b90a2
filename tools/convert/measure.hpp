// Measures a model on a text, for pruning: its perplexity, and how large the inputs of its output matrices (of attention and of FFNs) are,
// as mean squares.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/backend/input_observer.hpp>
#include <tessera/extend/files/model_source.hpp>

namespace tessera::convert {

// Mean squares of the inputs of matrices, by the names of their tensors.
class MeanSquares final : public InputObserver {
 public:
  void see(std::string_view tensor, std::uint32_t matrix, std::span<const float> input) noexcept override;
  // Returns the mean squares of a tensor's inputs; an empty list if the tensor was not seen.
  [[nodiscard]] std::vector<float> of(std::string_view tensor) const;
  void expect(std::string_view tensor, std::uint64_t inputs) { sums_.emplace(std::string(tensor), Sums{std::vector<double>(inputs), 0}); }

 private:
  struct Sums {
    std::vector<double> squares;
    std::uint64_t rows = 0;
  };
  std::map<std::string, Sums, std::less<>> sums_;
};

// The tokens of a text, in windows that are read one by one.
class Text {
 public:
  // Reads and tokenizes the file. Errors: io; invalid_argument, the file has fewer than 32 tokens.
  [[nodiscard]] static Result<Text> read(const std::filesystem::path& file, const ModelSource& model);
  // Returns the model's perplexity on the first 4096 tokens. `observer` may be nullptr.
  [[nodiscard]] Result<double> perplexity(const ModelSource& model, std::uint32_t threads, InputObserver* observer) const;

 private:
  std::vector<Token> tokens_;
};

}  // namespace tessera::convert
