// How the rows of a job are split into tiles.
#pragma once

#include <cstddef>

#include <immintrin.h>

namespace tessera::cpu::TESSERA_ISA {

[[gnu::always_inline]] constexpr std::size_t least(std::size_t a, std::size_t b) noexcept { return a < b ? a : b; }

// The first `outputs` lanes; 16 and more: all.
[[gnu::always_inline]] inline __mmask16 lanes(std::size_t outputs) noexcept {
  return static_cast<__mmask16>((1u << least(outputs, 16)) - 1);
}

// Evenly. Tiles that are a row short come first: they take the next tile's first row along and drop it, so that all
// have the same shape and nothing is read past the last row.
struct RowTiles {
  std::size_t count, rows, short_tiles;

  explicit RowTiles(std::size_t all, std::size_t most) noexcept
      : count((all + most - 1) / most), rows((all + count - 1) / count), short_tiles(count * rows - all) {}
  [[nodiscard]] std::size_t first(std::size_t tile) const noexcept { return tile * rows - least(tile, short_tiles); }
  [[nodiscard]] std::size_t size(std::size_t tile) const noexcept { return rows - (tile < short_tiles ? 1 : 0); }
};

// Byte offsets of a tile's rows, for gathers, and which lanes are rows.
struct RowLanes {
  __m512i offsets;
  __mmask16 mask;

  RowLanes(std::size_t rows, std::size_t stride) noexcept
      : offsets(_mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                   _mm512_set1_epi32(static_cast<int>(stride)))),
        mask(lanes(rows)) {}

  // The f32 or i32 at `at` of each row.
  [[gnu::always_inline]] [[nodiscard]] __m512 gather(const std::byte* at) const noexcept {
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, offsets, at, 1);
  }
};

}  // namespace tessera::cpu::TESSERA_ISA
