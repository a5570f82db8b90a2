// Rows of a step that meet the same chunks of keys in one task (attention_job.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/attention/attention_job.hpp"

namespace tessera::cpu {

struct Chunks {
  std::uint64_t first = 0, last = 0;  // [first, last)
};
// That any of the positions [first, last) sees.
[[nodiscard]] constexpr Chunks chunks_of(std::uint64_t first, std::uint64_t last, std::uint64_t window) noexcept {
  const std::uint64_t begin = window != 0 && first >= window ? first - window + 1 : 0;
  return {begin / kChunk, (last + kChunk - 1) / kChunk};
}

// Of the first `globals` keys, those before the windows of any of these positions.
[[nodiscard]] constexpr Chunks global_chunks_of(std::uint64_t last, std::uint64_t window, std::uint64_t globals) noexcept {
  const std::uint64_t before = last > window ? last - window : 0;
  return {0, ((before < globals ? before : globals) + kChunk - 1) / kChunk};
}

// Rows that follow each other: of one sequence and consecutive positions in the step, or of any sequences in a list of
// row numbers. The chunks are those that any of them sees.
struct RowBlock {
  std::size_t row = 0, rows = 0;
  Chunks chunks;
};

}  // namespace tessera::cpu
