// A model's weights in the memory of a device. The memory is reserved once; then matrices and vectors are added one after another: each is
// packed on the host and copied to the device. The handles of weights that backend/backend.hpp defines are the addresses of objects here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"
#include "cuda/driver/buffers.hpp"
#include "cuda/weights/device_weight.hpp"

namespace tessera::cuda {

// A vector of weights on the device.
struct DeviceVector {
  const float* data = nullptr;
  std::uint64_t n = 0;
};

inline const DeviceWeight& weight_of(const backend::Matrix& matrix) noexcept { return reinterpret_cast<const DeviceWeight&>(matrix); }
inline const DeviceMatrix& matrix_of(const backend::Matrix& matrix) noexcept { return weight_of(matrix); }
inline const DeviceVector& vector_of(const backend::Vector& vector) noexcept { return reinterpret_cast<const DeviceVector&>(vector); }
// Returns the address of the vector's values; nullptr if there is no vector.
inline const float* values_of(const backend::Vector* vector) noexcept { return vector != nullptr ? vector_of(*vector).data : nullptr; }

class WeightStore {
 public:
  // `host` must outlive the object.
  explicit WeightStore(Memory& host) noexcept;
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;
  ~WeightStore();

  [[nodiscard]] static std::uint64_t matrix_bytes(const backend::MatrixShape& shape) noexcept;
  [[nodiscard]] static std::uint64_t vector_bytes(std::uint64_t n) noexcept;
  [[nodiscard]] static std::uint64_t staging_bytes(const backend::MatrixShape& shape) noexcept;

  // Implement Backend's functions of the same names. Call reserve() first.
  Status reserve(std::shared_ptr<const Device> device, std::uint64_t bytes, std::uint64_t staging);
  Result<const backend::Matrix*> add_matrix(const backend::MatrixShape& shape, const backend::RowReader& read);
  Result<const backend::Vector*> add_vector(std::span<const float> values);
  Status scale_products(const backend::Matrix& weight, std::span<const float> factors);
  void finish_loading() noexcept;

  // Returns the shapes of the matrices, in the order in which they were added.
  [[nodiscard]] std::span<const backend::MatrixShape> shapes() const noexcept { return shapes_; }

 private:
  struct Staging;
  Result<CUdeviceptr> take(std::uint64_t bytes) noexcept;

  Memory& host_;
  std::shared_ptr<const Device> device_;
  DeviceBuffer memory_;
  std::uint64_t used_ = 0;
  std::unique_ptr<Staging> staging_;  // exists while the model is loaded
  // Each matrix has an allocation of its own, because its address is the handle that add_matrix() returned, and must not change. The list
  // is a vector because an empty vector allocates nothing: making a backend only to plan (without open()) then cannot fail.
  std::vector<std::unique_ptr<DeviceWeight>> matrices_;
  std::vector<backend::MatrixShape> shapes_;
  std::vector<std::unique_ptr<DeviceVector>> vectors_;
};

}  // namespace tessera::cuda
