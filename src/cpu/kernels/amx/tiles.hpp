// The tile unit: eight registers of up to 16 rows of 64 bytes. Thin functions over its instructions, as GCC 12's own
// intrinsics do not tell the compiler which memory they read.
//
//   C [rows][16] += A [rows][k] * B [k][16]
//
// A's rows are k values in order; a row of B holds, for each of the 16 outputs, the 4 bytes of consecutive k (two bf16
// or four int8) that meet the same 4 bytes of A. That is how packed panels lie. A product takes a cycle a row of A,
// however few k it has.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace tessera::cpu::TESSERA_ISA {

inline constexpr std::size_t kTileRows = 16;
inline constexpr std::size_t kTileBytes = 1024;

// Rows and bytes a row of each register: what LDTILECFG reads.
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

// The tiles of one job on its thread: configured at its start, released at its end, so that threads of the host never
// see a configuration of ours, nor we theirs.
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

// The same, of what is read once: it does not push out of L1 what is read often.
template <int kTile>
[[gnu::always_inline]] inline void tile_load_once(const void* from, std::size_t stride) noexcept {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
[[gnu::always_inline]] inline void tile_store(void* to, std::size_t stride) noexcept {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}

// int8 times int8 into int32. `add_signed`: both signed; `add_unsigned`: B unsigned.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_signed() noexcept {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_unsigned() noexcept {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

// bf16 times bf16 into f32.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void tile_add_bf16() noexcept {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

}  // namespace tessera::cpu::TESSERA_ISA
