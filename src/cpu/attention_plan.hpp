// How the attention of a step becomes tasks. Rows of one sequence and consecutive positions share what is read of a KV
// head, as many as suit the kernel. If that leaves threads without work, each chunk of keys of each row becomes a task,
// and what those give is merged from left to right: the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cpu/attention_job.hpp"

namespace tessera::cpu {

[[nodiscard]] KvType kv_type_of(DType dtype) noexcept;

struct Chunks {
  std::uint64_t first = 0, last = 0;  // [first, last)
};
// That any of the positions [first, last) sees.
[[nodiscard]] Chunks chunks_of(std::uint64_t first, std::uint64_t last, std::uint64_t window) noexcept;

// What all jobs of a sequence, layer and KV head share.
[[nodiscard]] AttendJob attend_job(const KvView& kv, const backend::AttentionShape& shape,
                                   std::size_t kv_head) noexcept;

// Rows of one sequence and consecutive positions, and the chunks that any of them sees.
struct RowBlock {
  std::size_t row = 0, rows = 0;
  Chunks chunks;
};

struct AttentionPlan {
  std::size_t block_rows = 0;      // at most
  std::size_t chunks_at_once = 0;  // of every block and KV head; 0: chunks are not split
  std::size_t chunks_a_piece = 0;
  std::uint64_t most_chunks = 0;   // of a block
};

// What attention over split chunks keeps between its tasks: of this many pieces, each of split_queries.
[[nodiscard]] constexpr std::size_t split_pieces(std::size_t slots) noexcept { return slots > 4 ? 16 * slots : 64; }
[[nodiscard]] constexpr std::size_t split_queries(std::size_t group) noexcept { return group > 16 ? group : 16; }
[[nodiscard]] constexpr std::size_t split_floats(std::size_t slots, std::size_t group, std::size_t value_dim) noexcept {
  return slots > 1 ? split_pieces(slots) * split_queries(group) * (partial_floats(value_dim) + 2) : 0;
}

// Cuts the step's rows into `blocks`, which has room for each row.
[[nodiscard]] AttentionPlan plan_attention(std::span<const backend::RowTable> rows, std::size_t queries,
                                           std::size_t group, std::size_t kv_heads, std::uint64_t window,
                                           std::size_t slots, std::vector<RowBlock>& blocks) noexcept;

// Adds one row's partial results of `chunks` chunks, in order and `stride` floats apart, to what has been merged so
// far: states [group][maximum, sum], out [group][value_dim]. Sums of 0: nothing has.
void merge_partials(const float* partials, std::size_t stride, std::size_t chunks, std::size_t group,
                    std::size_t value_dim, float* states, float* out) noexcept;
// Divides by the sums.
void finish_partials(std::size_t group, std::size_t value_dim, const float* states, float* out) noexcept;

}  // namespace tessera::cpu
