// The changes that adapters make to products, on the device (kernels/products/low_rank.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/low_rank.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/driver/buffers.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/products/low_rank.hpp"
#include "cuda/recurrent.hpp"
#include "cuda/row_lists.hpp"

namespace tessera::cuda {

// A change whose numbers (A, B, lengths) lie in a device's memory in the order and the types of the adapter's file.
class DeviceLowRank final : public backend::LowRank {
 public:
  [[nodiscard]] static std::uint64_t bytes_of(const backend::LowRankShape& shape) noexcept;
  // Copies the numbers to the device. Errors: out_of_memory, device_error.
  [[nodiscard]] static Result<std::shared_ptr<const DeviceLowRank>> make(std::shared_ptr<DeviceMemory> memory,
                                                                         const backend::LowRankShape& shape,
                                                                         const backend::LowRankValues& values);
  DeviceLowRank(const backend::LowRankShape& shape, std::shared_ptr<DeviceMemory> memory, Buffer buffer) noexcept
      : LowRank(shape), memory_(std::move(memory)), buffer_(std::move(buffer)) {}

  [[nodiscard]] LowRankNumber number() const noexcept;
  [[nodiscard]] const std::byte* a() const noexcept { return buffer_.data(); }
  [[nodiscard]] const std::byte* b() const noexcept;
  [[nodiscard]] const backend::LowRankValues::Length* lengths() const noexcept;  // nullptr: none

 private:
  std::shared_ptr<DeviceMemory> memory_;  // outlives the buffer
  Buffer buffer_;
};

// Makes changes in a step. Keeps memory for their intermediate results.
class LowRankChanges {
 public:
  // Begins a step: adds the lists of changed rows to the step's tables, and makes room for the intermediate results t, so that the changes
  // themselves upload and allocate nothing. Errors: out_of_memory, device_error.
  Status begin(const std::shared_ptr<Device>& device, StepArena& arena, std::span<const backend::ChangedRows> changes);
  // Changes the product that is in `out`; `in` is the product's input.
  Status add(const Device& device, const KernelTable& kernels, const backend::LowRankTerm& term, const DeviceRows& in, const DeviceRows& out) const;
  // Changes rows of a table, which are in `out`. `tokens` [rows of the step] is on the device.
  Status add_of_tokens(const Device& device, const KernelTable& kernels, const backend::LowRankTerm& term, float factor,
                       const std::uint32_t* tokens, const DeviceRows& out) const;

 private:
  Status add_up(const Device& device, const KernelTable& kernels, const backend::LowRankTerm& term, const DeviceRows& out) const;
  [[nodiscard]] float* t() const noexcept { return reinterpret_cast<float*>(t_.address()); }

  RowLists rows_;   // StepTables::changes
  DeviceBuffer t_;  // scale * A x of the term that is computed
};

}  // namespace tessera::cuda
