// The attention operations of a step. begin() makes a plan (attention_plan.hpp) for every shape of attention that the step computes, and
// copies the plans' tiles to the device. Later calls only launch kernels.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cuda/attention/attention_plan.hpp"
#include "cuda/kernel_table.hpp"
#include "cuda/step_rows.hpp"

namespace tessera::cuda {

// The query heads of a shape, over a layer's keys and values.
[[nodiscard]] AttentionHeads heads_of(const backend::AttentionShape& shape, const KvLayer& layer) noexcept;

class StepAttention {
 public:
  // Allocates the buffer for partial results. take(bytes) returns memory of the device.
  template <class Take>
  void lay_out(const backend::WorkspaceShape& shape, Take take) noexcept {
    const std::uint64_t heads = shape.columns[static_cast<std::size_t>(backend::Act::attn)];
    partial_floats_ = (heads * sizeof(float) * 4096 < kMostPartials ? heads * sizeof(float) * 4096 : kMostPartials) / sizeof(float);
    partials_ = reinterpret_cast<float*>(take(partial_floats_ * sizeof(float)));
  }

  // Plans each attention of the step twice: for all rows of the step, and for the wanted rows (whose outputs the caller needs). Both plans
  // are needed because a layer may drop all rows that are not wanted, and compute attention after that. Exception: if all rows are wanted,
  // one plan serves both.
  Status begin(const Device& device, StepArena& arena, const StepRows& rows, std::span<const backend::AttentionShape> shapes);

  // Computes attention of the rows of one KV set. Error: internal, begin() planned no attention of this shape.
  struct Call {
    const backend::AttentionShape& shape;
    std::size_t kv_set = 0;
    const float* sinks = nullptr;  // device addresses, this and the following ones
    const float* q = nullptr;
    float* out = nullptr;
  };
  Status attend(const Device& device, const KernelTable& kernels, const StepRows& rows, const Call& call) const;

 private:
  // Bytes for partial results: enough to split the tiles of a decode step whose rows see 32,768 keys.
  static constexpr std::uint64_t kMostPartials = std::uint64_t{16} << 20;

  // The two plans of attention (for all rows, and for the wanted rows) for one shape of attention in a step, with their tiles on the
  // device. Most layers of a model have the same shape and share these plans.
  struct Planned {
    struct OfRows {
      AttentionPlan plan;
      const AttentionTile* tiles[std::size(kQueryClasses)] = {};  // the tiles on the device
    };
    AttentionHeads heads;
    std::uint32_t key_dim = 0;
    std::size_t kv_set = 0;
    OfRows of[kRowsNow];  // by RowsNow
  };
  // Returns the plans of attention with these heads; nullptr if begin() made none.
  [[nodiscard]] const Planned* find(const AttentionHeads& heads, std::uint32_t key_dim, std::size_t kv_set) const noexcept;
  Status plan(const Device& device, StepArena& arena, const StepRows& step, std::span<const std::uint32_t> rows, RowsNow now, Planned& at);

  float* partials_ = nullptr;
  std::uint64_t partial_floats_ = 0;
  std::vector<Planned> planned_;  // the first n_planned_ are in use
  std::size_t n_planned_ = 0;
  std::vector<std::uint32_t> sequences_;  // memory for plan()
  std::vector<std::uint64_t> positions_, ends_;
};

}  // namespace tessera::cuda
