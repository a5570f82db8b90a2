// Reads the matrices of PEFT's modules.
#pragma once

#include <cstdint>
#include <vector>

#include "adapters/adapter_builder.hpp"
#include "adapters/peft/modules.hpp"
#include "adapters/peft/placement.hpp"

namespace tessera::detail::adapters {

// Reads the matrices A and B of a module. If the module is a parameter with the weights of all experts: `experts` is their number, and the
// experts' matrices, which are interleaved in the file, are separated. Otherwise `experts` is 1. If A and B have different formats, both
// become F32. Errors: unsupported, a format other than F32, F16 and BF16; corrupt_file; io.
[[nodiscard]] Result<PeftMatrices> read_matrices(const SafetensorsFolder& file, const PeftModule& module, std::uint64_t experts,
                                                 const AdapterBuilder& builder);

// Returns the transpose of the matrix [rows, columns]. `size`: bytes of a number.
[[nodiscard]] std::vector<std::byte> transposed_matrix(std::span<const std::byte> from, std::uint64_t rows, std::uint64_t columns,
                                                       std::uint64_t size);

// Makes one change of a tensor from the changes of its experts, for adapters whose file has a module for each expert. All experts must have
// the same rank: experts of a lower rank get rows and columns of zeros. A change has one scale: if the experts' scales differ, each B is
// multiplied by its expert's scale.
class ExpertStack {
 public:
  explicit ExpertStack(std::uint64_t count) : experts_(count) {}

  // Precondition: all experts have the same inputs and outputs, and none is added twice.
  void add(std::uint32_t expert, PeftMatrices matrices, float scale);
  // Returns the bytes that stacked() takes.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] PeftMatrices stacked() const;
  // Returns the scale of all experts; 1 if their scales differ.
  [[nodiscard]] float scale() const noexcept { return has_one_scale_ ? scale_ : 1.0f; }

 private:
  struct Expert {
    PeftMatrices matrices;  // rank 0: the expert has no matrices
    float scale = 1.0f;
  };
  std::vector<Expert> experts_;
  std::uint64_t inputs_ = 0, outputs_ = 0, rank_ = 0;
  DType dtype_ = DType::f32;
  float scale_ = 1.0f;  // scale of the first expert that was added
  bool has_some_ = false, has_one_scale_ = true;
};

}  // namespace tessera::detail::adapters
