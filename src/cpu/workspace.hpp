// The CPU backend's working memory: one allocation, and where each buffer is in it. The same function (lay_out()) counts the bytes for
// the plan and places the buffers later, so that the plan has exactly the bytes that are taken.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tessera/core/numerics.hpp>

#include "backend/backend.hpp"
#include "cpu/kernels.hpp"

namespace tessera::cpu {

// Returns the next multiple of 64, a cache line: every buffer and every weight begins at one.
[[nodiscard]] constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

// The values that decide the sizes of buffers, together with the model's shape. `slots`: tasks that run at once (Tasks).
struct WorkspaceRules {
  const Kernels& kernels;
  Numerics numerics;
  std::size_t slots;
};

struct Workspace {
  float* acts[backend::kActs] = {};  // [rows, columns]; logits: [output_rows, columns]
  float* rope = nullptr;             // [rope_floats]
  std::byte* prepared = nullptr;     // prepared rows (prepared_rows.hpp)
  float* states = nullptr;           // attention: [rows][n_heads][maximum, sum], while phases merge chunks
  float* partials = nullptr;         // attention: split_floats() floats
  float* votes = nullptr;            // [voters][heads][keys]
  // For experts(). A slot is a row together with one of the experts that were chosen for it.
  float* gate = nullptr;                // [slots, ffn_dim], then the experts' outputs [slots, width]
  float* up = nullptr;                  // [slots, ffn_dim]
  std::byte* slot_rows = nullptr;       // prepared rows of all experts
  std::uint32_t* slot_lists = nullptr;  // [5][slots]
  std::uint64_t* places = nullptr;      // [2][n_experts]
  std::byte* scratch = nullptr;         // [slots of Tasks][scratch_bytes]
  std::size_t rope_floats = 0, scratch_bytes = 0;
  std::uint64_t bytes = 0;  // bytes of all buffers

  // Places the buffers of a model's workspace at `base`, which has `bytes` bytes. If `base` is nullptr, only counts the
  // bytes.
  [[nodiscard]] static Workspace lay_out(const backend::WorkspaceShape& shape, const WorkspaceRules& rules,
                                         std::byte* base) noexcept;
};

}  // namespace tessera::cpu
