// Helpers of all matrix products with AMX: they cut a job's rows into tiles for the tile unit, and store outputs.
#pragma once

#include <cstddef>

#include <immintrin.h>

#include "cpu/kernels.hpp"

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] constexpr std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

// Returns the mask of the first `outputs` lanes; of all lanes if `outputs` is 16 or more.
[[gnu::always_inline]] inline __mmask16 lanes(std::size_t outputs) noexcept {
  return static_cast<__mmask16>((1u << least(outputs, 16)) - 1);
}

// The rows of a job, cut into row tiles. The tile unit multiplies all rows of a row tile at once. A row tile is a group of prepared rows
// (prepared_rows.hpp). The last row tile may have fewer rows; the tile unit then computes results for the missing rows too, and these
// results are not used.
struct RowTiles {
  std::size_t count, rows, all;  // tiles, rows of a full tile, rows of the job
  std::size_t line;   // bytes from one cache line of a row to the row's next line: the lines of a tile's rows alternate
  const std::byte* x;
  std::size_t bytes;  // bytes of a tile

  explicit RowTiles(const LinearJob& job) noexcept
      : count((job.rows + job.group - 1) / job.group), rows(job.group), all(job.rows), line(64 * rows), x(job.x),
        bytes(rows * job.x_stride) {}
  [[nodiscard]] std::size_t first(std::size_t tile) const noexcept { return tile * rows; }
  [[nodiscard]] std::size_t size(std::size_t tile) const noexcept { return least(rows, all - first(tile)); }
  // Returns the address of byte `of_row` of the tile's first row. The same byte of each further row is 64 bytes later.
  [[nodiscard]] const std::byte* at(std::size_t tile, std::size_t of_row) const noexcept {
    return x + tile * bytes + in_group(of_row, rows);
  }
};

// Stores a task's outputs. If LinearJob::past_caches() is true, stores them past the caches, and the destructor executes a store fence.
class Output {
 public:
  explicit Output(const LinearJob& job) noexcept : past_caches_(job.past_caches()) {}
  ~Output() {
    if (past_caches_) _mm_sfence();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Stores up to 16 outputs of one row.
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

// Gathers one number of each row of a tile into the lanes of a vector, row i into lane i. `offsets`: bytes from the first row's number to
// that of each row. `mask`: the lanes that have a row.
struct RowLanes {
  __m512i offsets = _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 6);
  __mmask16 mask;

  explicit RowLanes(std::size_t rows) noexcept : mask(lanes(rows)) {}

  // Returns one f32 or i32 of each row, row i in lane i. `at`: the number's address in the first row.
  [[gnu::always_inline]] [[nodiscard]] __m512 gather(const std::byte* at) const noexcept {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, at, 1);
  }
};

}  // namespace tessera::cpu::TESSERA_ISA
