// Rows of a step that meet the same chunks of keys in one task (attention_job.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/attention/attention_job.hpp"

namespace tessera::cpu {

struct Chunks {
  std::uint64_t first = 0, last = 0;  // [first, last)
};
// Returns the chunks that any of the positions [first, last) sees.
[[nodiscard]] constexpr Chunks chunks_of(std::uint64_t first, std::uint64_t last, std::uint64_t window) noexcept {
  const std::uint64_t begin = window != 0 && first >= window ? first - window + 1 : 0;
  return {begin / kChunk, (last + kChunk - 1) / kChunk};
}

// Returns the chunks of the first `globals` keys that lie before a window ending at a position below `last`.
[[nodiscard]] constexpr Chunks global_chunks_of(std::uint64_t last, std::uint64_t window, std::uint64_t globals) noexcept {
  const std::uint64_t before = last > window ? last - window : 0;
  return {0, ((before < globals ? before : globals) + kChunk - 1) / kChunk};
}

// Rows that follow each other: rows of the step of one sequence at consecutive positions, or entries of a list of row
// numbers, of any sequences. `chunks`: the chunks that any of the rows sees.
struct RowBlock {
  std::size_t row = 0, rows = 0;
  Chunks chunks;
};

}  // namespace tessera::cpu
