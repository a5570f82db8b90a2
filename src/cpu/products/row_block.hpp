// A block of attention: rows of a step that one task multiplies by the same chunks of keys (attention_job.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/attention/attention_job.hpp"

namespace tessera::cpu {

struct Chunks {
  std::uint64_t first = 0, last = 0;  // [first, last)
};
// Returns the chunks of the keys that at least one of a block's rows sees. `first`: position of the first row; `end`: end of the keys
// that the last row sees; `window`: AttentionShape::window.
[[nodiscard]] constexpr Chunks chunks_of(std::uint64_t first, std::uint64_t end, std::uint64_t window) noexcept {
  const std::uint64_t begin = window != 0 && first >= window ? first - window + 1 : 0;
  return {begin / kChunk, (end + kChunk - 1) / kChunk};
}

// Returns the chunks of the global keys (the first `globals` keys) that lie before the window of a row at position last - 1.
[[nodiscard]] constexpr Chunks global_chunks_of(std::uint64_t last, std::uint64_t window, std::uint64_t globals) noexcept {
  const std::uint64_t before = last > window ? last - window : 0;
  return {0, ((before < globals ? before : globals) + kChunk - 1) / kChunk};
}

// Rows [row, row + rows), and the chunks by which they are multiplied; at least one of the rows sees keys of each chunk. There are two
// kinds of blocks, by the phase to which they belong (AttentionPhase::row_numbers):
// - null: `row` is the index of a row of the step. The rows belong to one sequence and have consecutive positions.
// - not null: `row` is an index into this list of row numbers. The rows may belong to several sequences.
struct RowBlock {
  std::size_t row = 0, rows = 0;
  Chunks chunks;
};

}  // namespace tessera::cpu
