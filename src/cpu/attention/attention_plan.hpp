// How the attention of a step becomes tasks. Rows meet keys in blocks, as many queries as suit the kernel: rows of one
// sequence and consecutive positions, and rows of any sequences for the chunks that these share (shared_chunks.hpp). A
// row's chunks are merged from left to right, whatever block they are in: the same bits.
//
// A plan is some phases, one after the other: global keys in front of windows, what comes before the shared chunks, the levels of
// these, the rest. Blocks
// of a phase do not wait for each other. If a phase leaves threads without work, each chunk of its blocks becomes a task,
// and what those give is merged afterwards.
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

// What all jobs of a sequence, layer and KV head share.
[[nodiscard]] AttendJob attend_job(const KvView& kv, const backend::AttentionShape& shape,
                                   std::size_t kv_head) noexcept;

// What attention over split chunks keeps between its tasks: the partial results of this many chunks for split_queries
// each, or of fewer for more.
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
  const std::uint32_t* row_numbers = nullptr;  // of blocks that share their chunks; null: blocks are rows of the step
  bool is_last = true;                         // nothing comes after these rows' chunks
  std::uint64_t globals = 0;                   // not 0: of the first so many keys those that rows' windows do not see
  std::size_t block_rows = 0;      // at most
  std::uint64_t most_chunks = 0;   // of a block
  std::size_t chunks_at_once = 0;  // of every block and KV head; 0: chunks are not split
  std::size_t chunks_a_task = 0;
};

class AttentionPlan {
 public:
  struct Step {
    std::span<const backend::RowTable> rows;
    std::span<const KvView> sequences;
    backend::AttentionShape shape;
    std::size_t queries = 0;  // of a task, that suit the kernel
    std::size_t kv_heads = 0, query_group = 0, slots = 0;
  };

  void reserve(std::size_t rows);
  // Allocates nothing if there are no more rows than reserved.
  void start(const Step& step) noexcept;
  // Whether rows have chunks in more than one phase.
  [[nodiscard]] bool shares() const noexcept { return shares_ || !global_blocks_.empty(); }
  // False at the end. The phase is valid until the next one is asked for.
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

  Step step_;
  bool shares_ = false;
  Ahead ahead_ = Ahead::nothing;
  SharedChunks shared_;
  std::vector<RowBlock> blocks_;         // of the step's rows: what is not shared
  std::vector<RowBlock> shared_blocks_;  // of a level
  std::vector<RowBlock> global_blocks_;  // blocks of the step's rows whose windows do not see all global keys
};

// Adds one row's partial results of `chunks` chunks, in order and `stride` floats apart, to what has been merged so
// far: states [query_group][maximum, sum], out [query_group][value_dim]. Sums of 0: nothing has.
void merge_partials(const float* partials, std::size_t stride, std::size_t chunks, std::size_t query_group,
                    std::size_t value_dim, float* states, float* out) noexcept;
// Joins the heads' sinks to the sums, if there are any, and divides by these.
void finish_partials(std::size_t query_group, std::size_t value_dim, const float* sinks, const float* states,
                     float* out) noexcept;

}  // namespace tessera::cpu
