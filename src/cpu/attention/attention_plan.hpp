// Cuts the attention of one layer in a step into tasks. A task multiplies a block of rows by chunks of 256 keys. A block has rows of one
// sequence at consecutive positions, or rows of several sequences that share these chunks (shared_chunks.hpp). A block has about as many
// queries as the kernel needs to be fastest. A row's chunks are always merged from left to right, so the bits of the result do not depend
// on how the rows are cut into blocks.
//
// A plan has phases, which are computed one after the other:
// 1. global keys that lie before the rows' windows
// 2. chunks before the shared chunks
// 3. shared chunks, a phase for each level of the tree (shared_chunks.hpp)
// 4. all other chunks
// Phases that would be empty are left out. Within a phase no block waits for another. If a phase has too few blocks for all threads, the
// chunks of its blocks are divided among several tasks, and the partial results are merged afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "cpu/attention/shared_chunks.hpp"
#include "cpu/products/row_block.hpp"

namespace tessera::cpu {

[[nodiscard]] KvType kv_type_of(DType dtype) noexcept;

// Returns a job for one sequence, layer and KV head. Only the members that are the same in all such jobs are set: pages, dimensions,
// window, scale. The caller sets the others (rows, chunks, buffers).
[[nodiscard]] AttendJob attend_job(const KvView& kv, const backend::AttentionShape& shape,
                                   std::size_t kv_head) noexcept;

// Returns the end of the keys that a row sees: the first position that it does not see.
[[nodiscard]] constexpr std::uint64_t end_of_keys(const backend::RowTable& row, const backend::AttentionShape& shape) noexcept {
  const std::uint64_t own = row.position + 1;
  if (shape.ahead == 0) return own;
  return own + shape.ahead < row.end ? own + shape.ahead : row.end;
}

// Sizes of the workspace's buffer for partial results, which attention needs if a block's chunks are divided among tasks. The buffer has
// room for split_pieces() chunks with split_queries() queries each; if blocks have more queries, for fewer chunks. split_floats() returns
// the size of the buffer: 0 with one thread, which never divides chunks. `slots`: number of threads.
[[nodiscard]] constexpr std::size_t split_pieces(std::size_t slots) noexcept { return slots > 4 ? 16 * slots : 64; }
[[nodiscard]] constexpr std::size_t split_queries(std::size_t query_group) noexcept {
  return query_group > 16 ? query_group : 16;
}
[[nodiscard]] constexpr std::size_t split_floats(std::size_t slots, std::size_t query_group,
                                                 std::size_t value_dim) noexcept {
  return slots > 1 ? split_pieces(slots) * split_queries(query_group) * partial_floats(value_dim) : 0;
}

struct AttentionPhase {
  std::span<const RowBlock> blocks;
  // If row_numbers is nullptr, RowBlock::row is the index of a row of the step. Otherwise (phases of shared chunks) row_numbers is a list
  // of rows of the step, and RowBlock::row is an index into the list.
  const std::uint32_t* row_numbers = nullptr;
  bool is_last = true;                         // no chunks of these rows come in a later phase
  std::uint64_t globals = 0;                   // AttendJob::globals
  std::size_t block_rows = 0;      // the most rows of a block
  std::uint64_t most_chunks = 0;   // the most chunks of a block
  std::size_t chunks_at_once = 0;  // chunks that one round computes for each block and KV head; 0: no block is split
  std::size_t chunks_a_task = 0;
};

class AttentionPlan {
 public:
  struct Call {
    std::span<const backend::RowTable> rows;
    std::span<const KvView> sequences;
    backend::AttentionShape shape;
    std::size_t queries = 0;  // number of queries in a task with which the kernel is fastest (Attend::queries)
    std::size_t kv_heads = 0, query_group = 0, slots = 0;
  };

  void reserve(std::size_t rows);
  // Begins the plan of a step. Allocates nothing if the step has no more rows than reserved.
  void start(const Call& call) noexcept;
  // Returns whether some rows have chunks in more than one phase.
  [[nodiscard]] bool shares() const noexcept { return shares_ || !global_blocks_.empty(); }
  // Sets `phase` to the next phase, which is valid until the next call. Returns false if all phases have been returned.
  bool next(AttentionPhase& phase) noexcept;

 private:
  enum class Ahead : std::uint8_t { globals, before, shared, rest, nothing };

  void cut_rows(std::size_t most_rows) noexcept;
  void find_globals() noexcept;
  [[nodiscard]] Ahead behind_globals() const noexcept;
  [[nodiscard]] AttentionPhase phase_of(std::span<const RowBlock> blocks) const noexcept;
  [[nodiscard]] AttentionPhase shared_phase() noexcept;
  [[nodiscard]] AttentionPhase rest() noexcept;
  [[nodiscard]] std::size_t enough() const noexcept;
  [[nodiscard]] std::size_t room(std::size_t block_rows) const noexcept;

  Call call_;
  bool shares_ = false;
  Ahead ahead_ = Ahead::nothing;
  SharedChunks shared_;
  std::vector<RowBlock> blocks_;         // blocks of the step's rows, with the chunks that are not shared
  std::vector<RowBlock> shared_blocks_;  // blocks of the present level of shared chunks
  std::vector<RowBlock> global_blocks_;  // blocks of rows whose windows do not see all global keys
};

// Merges `chunks` partial results of one row, in their order, into the row's result so far. The partial results lie `stride` floats
// apart. The result so far: states [query_group][maximum, sum] and out [query_group][value_dim]. If the sum in `states` is 0, no chunk has
// been merged yet, and `out` is not read.
void merge_partials(const float* partials, std::size_t stride, std::size_t chunks, std::size_t query_group,
                    std::size_t value_dim, float* states, float* out) noexcept;
// Finishes a row's result: adds the heads' sinks (if not null) to the sums, and divides `out` by the sums.
void finish_partials(std::size_t query_group, std::size_t value_dim, const float* sinks, const float* states,
                     float* out) noexcept;

}  // namespace tessera::cpu
