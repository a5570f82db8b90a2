// Arguments of the kernels in heads.cu, which norm, rotate and store queries, keys and values between their products and attention. A warp
// computes one head of one row; a block has kHeadThreads / 32 warps.
#pragma once

#include <cstdint>

#include <tessera/extend/core/operation_kinds.hpp>

#include "cuda/kernels/kv.hpp"

namespace tessera::cuda {

inline constexpr std::uint32_t kHeadThreads = 128;

// Returns the blocks (grid.x) for this number of heads, summed over all rows.
[[nodiscard]] constexpr std::uint32_t head_blocks(std::uint64_t heads) noexcept {
  return static_cast<std::uint32_t>((heads + kHeadThreads / 32 - 1) / (kHeadThreads / 32));
}

struct RopeTurns {
  const float* table;   // [rows][n][cosine, sine]
  std::uint32_t pairs;  // n; the first 2n elements of a head turn
  RopePairs kind;
};

// head_norm: x = RMSNorm(x) * weight over each head. One warp for each of the rows * heads heads.
struct HeadNormArgs {
  float* x;             // [rows, heads, dim]
  const float* weight;  // [dim]
  float eps;
  std::uint32_t rows, heads, dim;
};

// rope: rotates heads by position. One warp for each of the rows * heads heads.
struct RopeArgs {
  float* x;  // [rows, heads, dim]
  RopeTurns turns;
  std::uint32_t rows, heads, dim;
};

// append_kv_<codec>: writes keys and values to their pages. One warp for each of the rows * 2 * kv_heads heads.
struct AppendKvArgs {
  KvLayer layer;
  KvTables tables;
  const float* k;  // [rows, kv_heads, key_dim]
  const float* v;  // [rows, kv_heads, value_dim]
  std::uint32_t rows;
  const std::uint32_t* source_rows = nullptr;  // [rows]: rows of k and v to read, if a row goes to several sequences; nullptr: the same
};

// rope_append_<codec>: in one kernel, norms and rotates q and k (as head_norm and rope do) and appends keys and values to the pages (as
// append_kv does). The bits are those of the three separate kernels. One warp for each of the rows * (heads + 2 * kv_heads) heads.
struct RopeAppendArgs {
  KvLayer layer;
  KvTables tables;
  float* q;             // [rows, heads, key_dim]
  float* k;             // [rows, kv_heads, key_dim]
  const float* v;       // [rows, kv_heads, value_dim]
  const float* q_norm;  // [key_dim]; nullptr: no norm. The same for k_norm
  const float* k_norm;
  RopeTurns turns;  // without pairs: no rope
  float eps;        // placed here, where it leaves no padding
  std::uint32_t rows, heads;
};

// latent_append_<codec>: norms and rotates the queries and keys of latent attention, and appends the keys to the pages
// (backend::Backend::latent_append()). Only for codecs without a scale. A row has `heads` queries and one key; one warp for each of these
// rows * (heads + 1) vectors. The first launch for a layer norms and rotates the keys and queries of all rows, and appends the keys of the
// first KV set's rows. Further launches only append: the keys of the other KV sets' rows, or keys to the pages of branches. For these
// launches `is_ready` is 1 (keys and queries are computed already) and `heads` is 0.
struct LatentAppendArgs {
  KvLayer layer;
  KvTables tables;
  float* turned_q;        // [rows, heads, turned]
  const float* latent_q;  // [rows, heads, latent]
  float* turned_k;        // [rows, turned]
  float* latents;         // [rows, latent]
  float* q;               // [rows, heads, turned + latent]
  const float* norm;      // [latent]
  RopeTurns turns;        // without pairs: no rope
  float eps;
  std::uint32_t rows, heads;
  std::uint32_t turned, latent;
  std::uint32_t is_ready;  // not 0: keys and queries are computed already; only appends keys
  const std::uint32_t* source_rows = nullptr;  // as in AppendKvArgs; only with is_ready
};

}  // namespace tessera::cuda
