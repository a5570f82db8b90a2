// Arguments of the kernels that choose a row's experts, sort rows by expert, and add up the experts' results (backend::Routing,
// backend::Experts). A slot is a row together with one of its experts: slot row * n_used + i belongs to the row's i-th expert.
//
// Numerics: a row's result depends only on the row. Scores and weights are computed as on the CPU, operation by operation. Exception: the
// sum of a softmax over all experts has another order: lane l of a warp adds up experts l, l + 32, ... from 0; then warp_sum() adds the
// lanes' sums.
#pragma once

#include <cstdint>

#include <tessera/extend/core/operation_kinds.hpp>

namespace tessera::cuda {

// route_experts: chooses the experts of each row. A warp computes a row (grid.x: rows). Dynamic shared memory: route_shared_bytes().
struct RouteArgs {
  const float* logits;    // [rows, n_experts]
  const float* bias;      // [n_experts], added to the scores only for the choice; nullptr: none
  const float* scales;    // [n_experts], factors of the weights; nullptr: none
  std::uint32_t* chosen;  // [rows, n_used], ascending
  float* weights;         // [rows, n_used]
  std::uint32_t n_experts, n_used;
  std::uint32_t n_groups, n_used_groups;
  RoutingKind kind;
  GroupScore group_score;
  float scale;
  std::uint32_t renormalises;  // not 0: weights are divided by their sum
};
inline constexpr unsigned kRouteThreads = 32;

// Returns the bytes for the scores of experts and of groups, and for the marks of the experts that are chosen.
[[nodiscard]] constexpr std::uint32_t route_shared_bytes(std::uint32_t n_experts, std::uint32_t n_groups) noexcept {
  return (2 * n_experts + n_groups) * 4;
}

// Some slots of one expert, which a thread block multiplies at once (products/linear_slots.hpp).
struct SlotTile {
  std::uint32_t matrix;
  std::uint32_t first, count;  // range of the sorted list of slots
};

// deal_experts: sorts the slots by expert and then by row, and cuts each expert's slots into tiles. One thread block.
struct DealArgs {
  const std::uint32_t* chosen;  // [slots]
  std::uint32_t* slots;         // [slots]: the sorted list
  std::uint32_t* first;         // [n_experts]: index of the expert's first slot in the list
  std::uint32_t* first_tile;    // [n_experts]
  SlotTile* tiles;              // [most_tiles()]
  std::uint32_t* n_tiles;       // [1]
  std::uint32_t n_slots, n_experts;
  std::uint32_t tile_slots;  // the most slots of a tile
};
inline constexpr unsigned kDealThreads = 256;

// Returns the largest number of tiles into which the slots can be cut.
[[nodiscard]] constexpr std::uint32_t most_tiles(std::uint32_t n_slots, std::uint32_t n_experts, std::uint32_t tile_slots) noexcept {
  const std::uint32_t most = n_slots / tile_slots + n_experts;
  return most < n_slots ? most : n_slots;
}

// sum_experts: out = the sum of weight * given over the row's slots, ascending from 0. grid.x: rows.
struct SumExpertsArgs {
  const float* given;    // [slots, columns]
  const float* weights;  // [slots]
  float* out;            // [rows, columns]
  std::uint32_t n_used, columns;
};

}  // namespace tessera::cuda
