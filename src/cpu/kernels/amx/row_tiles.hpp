// How the rows of a job are split into tiles.
#pragma once

#include <cstddef>

#include <immintrin.h>

#include "cpu/kernels.hpp"

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] constexpr std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

// The first `outputs` lanes; 16 and more: all.
[[gnu::always_inline]] inline __mmask16 lanes(std::size_t outputs) noexcept {
  return static_cast<__mmask16>((1u << least(outputs, 16)) - 1);
}

// A tile is a group of rows (prepared_rows.hpp). The last may have fewer than it has room for: what it computes of the
// others is dropped.
struct RowTiles {
  std::size_t count, rows, all;
  std::size_t line;   // bytes of a line of all rows
  const std::byte* x;
  std::size_t bytes;  // of a tile

  explicit RowTiles(const LinearJob& job) noexcept
      : count((job.rows + job.group - 1) / job.group), rows(job.group), all(job.rows), line(64 * rows), x(job.x),
        bytes(rows * job.x_stride) {}
  [[nodiscard]] std::size_t first(std::size_t tile) const noexcept { return tile * rows; }
  [[nodiscard]] std::size_t size(std::size_t tile) const noexcept { return least(rows, all - first(tile)); }
  // Byte `of_row` of the tile's first row; the other rows' are 64 bytes apart.
  [[nodiscard]] const std::byte* at(std::size_t tile, std::size_t of_row) const noexcept {
    return x + tile * bytes + in_group(of_row, rows);
  }
};

// Where a task's sums go in the end.
class Output {
 public:
  explicit Output(const LinearJob& job) noexcept : past_caches_(job.past_caches()) {}
  ~Output() {
    if (past_caches_) _mm_sfence();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Of one row.
  [[gnu::always_inline]] void put(float* to, __mmask16 outputs, __m512 sums) const noexcept {
    if (past_caches_ && outputs == 0xffff) {
      _mm512_stream_ps(to, sums);
    } else {
      _mm512_mask_storeu_ps(to, outputs, sums);
    }
  }

 private:
  bool past_caches_;
};

// Byte offsets of a tile's rows, for gathers, and which lanes are rows.
struct RowLanes {
  __m512i offsets = _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 6);
  __mmask16 mask;

  explicit RowLanes(std::size_t rows) noexcept : mask(lanes(rows)) {}

  // The f32 or i32 at `at` of each row.
  [[gnu::always_inline]] [[nodiscard]] __m512 gather(const std::byte* at) const noexcept {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, at, 1);
  }
};

}  // namespace tessera::cpu::TESSERA_ISA
