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
#include "cuda/step_arena.hpp"

namespace tessera::cuda {

// A change whose numbers lie in a device's memory as the adapter's file has them: A, B, lengths.
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
  // Changes the product that is in `out`; `in` is the product's input. A term's rows are uploaded through the arena.
  Status add(const std::shared_ptr<Device>& device, const KernelTable& kernels, StepArena& arena, const backend::LowRankTerm& term,
             const DeviceRows& in, const DeviceRows& out);
  // Changes rows of a table, which are in `out`. `tokens` [rows of the step] is on the device.
  Status add_of_tokens(const std::shared_ptr<Device>& device, const KernelTable& kernels, StepArena& arena, const backend::LowRankTerm& term,
                       float factor, const std::uint32_t* tokens, const DeviceRows& out);

 private:
  Status reserve(const std::shared_ptr<Device>& device, std::uint64_t floats);
  Status add_up(const Device& device, const KernelTable& kernels, const backend::LowRankTerm& term, const std::uint32_t* rows,
                const DeviceRows& out) const;
  [[nodiscard]] float* t() const noexcept { return reinterpret_cast<float*>(t_.address()); }

  DeviceBuffer t_;
};

}  // namespace tessera::cuda
