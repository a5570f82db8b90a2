// The weights of a CPU backend, packed into panels (packed_layout.hpp), in one buffer. They are added while a model is loaded, and are
// only read afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"
#include "cpu/products/packed_matrix.hpp"
#include "cpu/tasks.hpp"

namespace tessera::cpu {

class WeightStore {
 public:
  // `memory` and `tasks`, whose threads pack, must outlive the object.
  WeightStore(Memory& memory, Tasks& tasks) : memory_(memory), tasks_(tasks) {}

  [[nodiscard]] static std::uint64_t matrix_bytes(const backend::MatrixShape& shape) noexcept;
  [[nodiscard]] static std::uint64_t vector_bytes(std::uint64_t n) noexcept;
  [[nodiscard]] static std::uint64_t staging_bytes(const backend::MatrixShape& shape) noexcept;

  // These do what the functions of the same names in backend.hpp do; reserve() is reserve_weights().
  Status reserve(std::uint64_t bytes, std::uint64_t staging);
  Result<const backend::Matrix*> add_matrix(const backend::MatrixShape& shape, const backend::RowReader& read);
  Result<const backend::Vector*> add_vector(std::span<const float> values);
  Status scale_products(const backend::Matrix& weight, std::span<const float> factors);
  Status round_inputs(const backend::Matrix& weight, const InputRounding& how);
  void finish_loading() noexcept { staging_ = Buffer(); }

  [[nodiscard]] const std::deque<backend::Matrix>& matrices() const noexcept { return matrices_; }
  // Returns whether every matrix has a format of few bits a weight (not F32, F16 or BF16).
  [[nodiscard]] bool all_quantised() const noexcept { return all_quantised_; }

 private:
  Result<std::byte*> take(std::uint64_t bytes) noexcept;
  Status populate(const std::byte* end) noexcept;
  Status pack(const backend::MatrixShape& shape, const backend::RowReader& read, std::uint64_t first_row,
              std::byte* to);

  Memory& memory_;
  Tasks& tasks_;
  Buffer weights_;
  std::uint64_t used_ = 0,       // bytes of weights_ that are taken by matrices and vectors
                populated_ = 0;  // bytes of weights_ that the system has backed by memory
  Buffer staging_;               // rows as the file has them, before they are packed
  std::deque<backend::Matrix> matrices_;
  std::deque<backend::Vector> vectors_;
  bool all_quantised_ = true;
};

}  // namespace tessera::cpu
