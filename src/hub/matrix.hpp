// A matrix of the folder's weights: one tensor, or several tensors that together describe quantised numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/core/result.hpp>

#include "files/safetensors/safetensors_folder.hpp"

namespace tessera::detail::hub {

class Matrix {
 public:
  virtual ~Matrix() = default;
  // Returns the format of the rows that read() returns.
  [[nodiscard]] virtual DType form() const noexcept = 0;
  // Reads bytes [offset, offset + out.size()) of the rows, which follow each other.
  [[nodiscard]] virtual Status read(const SafetensorsFolder& folder, std::uint64_t offset, std::span<std::byte> out) const = 0;
  // Returns the folder's tensors that describe the matrix, the weights first.
  [[nodiscard]] virtual std::span<const std::uint32_t> tensors() const noexcept = 0;
  // Returns the most bytes of memory that read() allocates.
  [[nodiscard]] virtual std::uint64_t staging_bytes() const noexcept { return 0; }
  // Drops the memory that read() keeps between calls.
  virtual void release() const noexcept {}

  // Returns the shape, outermost first, that an unquantised tensor would have: [outputs, inputs].
  [[nodiscard]] std::span<const std::uint64_t> dims() const noexcept { return dims_; }
  // Returns the factor by which all products with the matrix are multiplied (NVFP4); 1 for formats without it.
  [[nodiscard]] float factor() const noexcept { return factor_; }

 protected:
  std::vector<std::uint64_t> dims_;
  float factor_ = 1.0f;
};

// Returns the matrix that is one tensor of numbers. Error: unsupported, the numbers are not F32, F16 or BF16.
[[nodiscard]] Result<std::shared_ptr<const Matrix>> plain_matrix(const SafetensorsFolder& folder, const SafetensorsTensor& tensor);

}  // namespace tessera::detail::hub
