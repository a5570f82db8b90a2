// Functions for the instructions of AMX's tile unit, which has eight registers of up to 16 rows of 64 bytes. They replace the intrinsics
// of GCC 12, which do not tell the compiler what memory they read. A tile product is
//
//   C [rows][16] += A [rows][k] * B [k][16]
//
// A is activations: a row of A has one row's activations in the order of k. B is weights: a row of B has, for each of the 16 outputs, the
// weights for consecutive values of k in 4 bytes (two bf16 or four int8). Row i of B is multiplied by bytes 4 i to 4 i + 3 of each row of
// A. Packed panels of BF16 have the order of B already; other weights have it after they are unpacked. A product takes one cycle for each
// row of A, however short the row is.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace tessera::cpu::TESSERA_ISA {

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileBytes = 1024;

// The shape of each register, rows and bytes a row, in the form that LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(std::size_t tile, std::size_t tile_rows, std::size_t row_bytes) noexcept {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    bytes[tile] = static_cast<std::uint16_t>(row_bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

// Configures the tile registers of this thread for one job, and releases them in the destructor. So the host's code never sees the
// library's configuration, and a job never sees a configuration of the host.
class Tiles {
 public:
  explicit Tiles(const TileShapes& shapes) noexcept { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
  ~Tiles() { asm volatile("tilerelease" ::: "memory"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

template <int kTile>
[[gnu::always_inline]] inline void tile_zero() noexcept {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

template <int kTile>
[[gnu::always_inline]] inline void tile_load(const void* from, std::size_t stride) noexcept {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}

// Loads a tile of data that is read only once, with a hint not to evict from L1 the data that is read often.
template <int kTile>
[[gnu::always_inline]] inline void tile_load_once(const void* from, std::size_t stride) noexcept {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
[[gnu::always_inline]] inline void tile_store(void* to, std::size_t stride) noexcept {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}

// Multiply int8 by int8 and add to int32. tile_add_signed(): both are signed. tile_add_unsigned(): A is signed, B unsigned.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_signed() noexcept {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_unsigned() noexcept {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

// Multiplies bf16 by bf16 and adds to f32.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_bf16() noexcept {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

}  // namespace tessera::cpu::TESSERA_ISA
