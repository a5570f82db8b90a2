// Recurrent layers on the device: finds out where the state of each row's sequence is before and after a step, and launches the kernels of
// kernels/recurrent.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/recurrent.hpp"
#include "cuda/step_arena.hpp"

namespace tessera::cuda {

// Rows of an activation on the device.
struct DeviceRows {
  float* data = nullptr;
  std::uint32_t columns = 0;
};

class RecurrentLayers {
 public:
  // Forgets the last step.
  void reset() noexcept { n_sets_ = 0; }
  // Adds the rows of the sequences that have this KV layout to the step's tables. Layouts without states add nothing.
  Status add(StepArena& arena, const KvLayout& layout, std::span<const backend::RowTable> rows, std::span<const KvView> sequences);

  // The operations of backend::Backend. `weight`, `bias`, `rate`, `step_bias` and `skip` are device addresses.
  Status convolve(const Device& device, const KernelTable& kernels, std::uint32_t layer, ConvolveArgs args) const;
  Status delta_rule(const Device& device, const KernelTable& kernels, const backend::Recurrence& how, const DeviceRows& qkv,
                    const DeviceRows& steps, const DeviceRows& betas, PrepareStateArgs vectors, float* out, std::uint32_t rows) const;
  Status scan(const Device& device, const KernelTable& kernels, const backend::Recurrence& how, const DeviceRows& xbc, const DeviceRows& steps,
              const DeviceRows& decays, PrepareStateArgs vectors, const float* skip, float* out, std::uint32_t rows) const;

 private:
  struct Set {
    const KvLayout* layout = nullptr;
    const StateRun* runs = nullptr;
    const std::uint64_t* after = nullptr;
    std::uint32_t n_runs = 0;
  };
  [[nodiscard]] std::span<const Set> sets() const noexcept { return std::span(sets_).first(n_sets_); }
  Status recur(const Device& device, Kernel kernel, const backend::Recurrence& how, RecurrenceArgs args) const;

  std::vector<Set> sets_;
  std::size_t n_sets_ = 0;
  std::vector<StateRun> runs_;  // memory for add()
};

}  // namespace tessera::cuda
