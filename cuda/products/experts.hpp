// Mixtures of experts on the device. Kernels choose the rows' experts and sort the rows by expert (kernels/experts.hpp), so that a step
// does not wait for the host. An expert's weights are read once for each tile of the rows that take the expert.
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/kernels/experts.hpp"
#include "cuda/weights/device_weight.hpp"

namespace tessera::cuda {

// One layer's experts and their rows. All pointers except the weights are device addresses.
struct ExpertCall {
  const backend::Routing& routing;
  ActivationKind activation = ActivationKind::silu;
  const DeviceWeight* gate = nullptr;  // nullptr: no gates
  const DeviceWeight* up = nullptr;
  const DeviceWeight* down = nullptr;
  const float* gate_bias = nullptr;  // [n_experts, ffn_dim]; nullptr: none. The same for the other biases
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
  const float* choice_bias = nullptr;  // [n_experts]
  const float* scales = nullptr;       // [n_experts]
  std::uint32_t rows = 0, n_experts = 0;
  const float* logits = nullptr;  // [rows, n_experts]
  const float* in = nullptr;      // [rows][in_columns]
  std::uint32_t in_columns = 0;
  float* out = nullptr;  // [rows, width]
};

// Products of slots with one of several matrices each (kernels/products/linear_slots.hpp).
struct SlotProduct {
  const DeviceWeight& weight;
  const float* bias = nullptr;
  const float* x = nullptr;
  std::uint32_t x_stride = 0;
  float* out = nullptr;  // [slots][outputs of a matrix]
};

// Multiplies head h of each row of x by matrix h of the weight.
Status multiply_heads(const Device& device, const KernelTable& kernels, const SlotProduct& product, std::uint32_t rows);

class ExpertFeeds {
 public:
  // Allocates the buffers for the largest step. take(bytes) returns memory of the device.
  template <class Take>
  void lay_out(const backend::WorkspaceShape& shape, Take take) noexcept {
    const std::uint64_t slots = std::uint64_t{shape.rows} * shape.used_experts;
    const auto words = [&](std::uint64_t n) { return reinterpret_cast<std::uint32_t*>(take(n * sizeof(std::uint32_t))); };
    if (slots == 0) return;
    const std::uint64_t width = shape.expert_dim > shape.expert_inputs ? shape.expert_dim : shape.expert_inputs;
    gate_ = reinterpret_cast<float*>(words(slots * width));
    up_ = reinterpret_cast<float*>(words(slots * shape.expert_dim));
    weights_ = reinterpret_cast<float*>(words(slots));
    chosen_ = words(slots);
    slots_ = words(slots);
    first_ = words(shape.n_experts);
    first_tile_ = words(shape.n_experts);
    n_tiles_ = words(1);
    tiles_ = reinterpret_cast<SlotTile*>(words(slots * sizeof(SlotTile) / sizeof(std::uint32_t)));
  }

  // out = the weighted sum of the experts' results (backend::Backend::experts()).
  Status compute(const Device& device, const KernelTable& kernels, const ExpertCall& call) const;

 private:
  Status route(const Device& device, const KernelTable& kernels, const ExpertCall& call, std::uint32_t tile_slots) const;

  float* gate_ = nullptr;           // [slots, ffn_dim], then the experts' results [slots, width]
  float* up_ = nullptr;             // [slots, ffn_dim]
  float* weights_ = nullptr;        // [slots]
  std::uint32_t* chosen_ = nullptr;  // [slots]
  std::uint32_t* slots_ = nullptr;   // [slots]: sorted by expert
  std::uint32_t* first_ = nullptr;   // [n_experts]
  std::uint32_t* first_tile_ = nullptr;
  std::uint32_t* n_tiles_ = nullptr;
  SlotTile* tiles_ = nullptr;  // [slots]
};

}  // namespace tessera::cuda
