// What happens to queries, keys and values between their products and attention: arguments of the kernels in heads.cu.
// A warp computes one head of one row; kHeadThreads / 32 of them are a block.
#pragma once

#include <cstdint>

#include <tessera/extend/core/operation_kinds.hpp>

#include "cuda/kernels/kv.hpp"

namespace tessera::cuda {

inline constexpr std::uint32_t kHeadThreads = 128;

// Blocks (x) for this many heads of all rows.
[[nodiscard]] constexpr std::uint32_t head_blocks(std::uint64_t heads) noexcept {
  return static_cast<std::uint32_t>((heads + kHeadThreads / 32 - 1) / (kHeadThreads / 32));
}

struct RopeTurns {
  const float* table;   // [rows][n][cosine, sine]
  std::uint32_t pairs;  // n; the first 2n elements of a head turn
  RopePairs kind;
};

// head_norm: x = RMSNorm(x) * weight over each head. A warp for each of rows * heads.
struct HeadNormArgs {
  float* x;             // [rows, heads, dim]
  const float* weight;  // [dim]
  float eps;
  std::uint32_t rows, heads, dim;
};

// rope: a warp for each of rows * heads.
struct RopeArgs {
  float* x;  // [rows, heads, dim]
  RopeTurns turns;
  std::uint32_t rows, heads, dim;
};

// append_kv_<codec>: a warp for each of rows * 2 * kv_heads.
struct AppendKvArgs {
  KvLayer layer;
  KvTables tables;
  const float* k;  // [rows, kv_heads, key_dim]
  const float* v;  // [rows, kv_heads, value_dim]
  std::uint32_t rows;
};

// rope_append_<codec>: head_norm and rope of q and k, then append_kv, with their bits. A warp for each of
// rows * (heads + 2 * kv_heads).
struct RopeAppendArgs {
  KvLayer layer;
  KvTables tables;
  float* q;             // [rows, heads, key_dim]
  float* k;             // [rows, kv_heads, key_dim]
  const float* v;       // [rows, kv_heads, value_dim]
  const float* q_norm;  // [key_dim], or none
  const float* k_norm;
  RopeTurns turns;  // no pairs: no rope
  float eps;        // here, where it leaves no gap
  std::uint32_t rows, heads;
};

}  // namespace tessera::cuda
