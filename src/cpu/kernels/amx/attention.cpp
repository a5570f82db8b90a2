// The attention kernels with AMX: the matrix products of chunks.hpp (scores, weighted sums) on the tile unit. One tile product computes
// the scores of 16 queries and 64 keys, or the weighted sums of 16 queries in 64 dimensions of the values. K and V in BF16 are read
// directly from the pages; other types are expanded to bf16 first (operands.hpp).
#include "cpu/kernels/amx/products.hpp"
#include "cpu/kernels/amx/tiles.hpp"
#include "cpu/kernels/attention/chunks.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace attention {
namespace {

constexpr std::size_t kQueries = 128;

// The matrix products of Attention on the tile unit (its parameter `Product`, kernels/attention/chunks.hpp). Tile registers: 0 to 3 sums; 4 queries
// or weights; 6 keys or values. If kParts is 2, each number is split into two bf16: then 4 and 6 have the high parts, and 5 and 7 the low
// parts.
template <std::size_t kParts>
struct TileProduct {
  static constexpr bool kInterleaves = true;
  static constexpr std::size_t kABytes = kParts * kTileBytes;

  TESSERA_INLINE void put(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) {
    if constexpr (kParts == 2) store_both_parts(tile + row * 64, tile + kTileBytes + row * 64, a, b);
    else store_high_parts(tile + row * 64, a, b);
  }

  template <int kC>
  TESSERA_INLINE void add(const Tile& b) {
    tile_load<6>(b.at, b.stride);
    if constexpr (kParts == 2) {
      tile_load<7>(b.at + kTileBytes, b.stride);
      tile_add_bf16<kC, 5, 6>();
      tile_add_bf16<kC, 4, 7>();
    }
    tile_add_bf16<kC, 4, 6>();
  }

  template <std::size_t kN = 4>
  TESSERA_INLINE void start() {
    tile_zero<0>();
    if constexpr (kN > 1) tile_zero<1>();
    if constexpr (kN > 2) tile_zero<2>();
    if constexpr (kN > 3) tile_zero<3>();
  }
  // Multiplies the left tile `a` by tile kC (0 to 3) of a step. The tiles of a step must come in order, because only tile 0 loads `a`.
  template <int kC>
  TESSERA_INLINE void step(const std::byte* a, const Tile& b) {
    if constexpr (kC == 0) {
      tile_load<4>(a, 64);
      if constexpr (kParts == 2) tile_load<5>(a + kTileBytes, 64);
    }
    add<kC>(b);
  }
  template <std::size_t kN = 4>
  TESSERA_INLINE void store(float* c, std::size_t stride) {
    tile_store<0>(c, stride * 4);
    if constexpr (kN > 1) tile_store<1>(c + 16, stride * 4);
    if constexpr (kN > 2) tile_store<2>(c + 32, stride * 4);
    if constexpr (kN > 3) tile_store<3>(c + 48, stride * 4);
  }

  template <std::size_t kN>
  TESSERA_INLINE void multiply_tiles(const std::byte* a, std::size_t steps, const Tile* tiles, float* c,
                                     std::size_t stride) {
    start<kN>();
    for (; steps > 0; --steps, a += kABytes, tiles += 4) {
      step<0>(a, tiles[0]);
      if constexpr (kN > 1) step<1>(a, tiles[1]);
      if constexpr (kN > 2) step<2>(a, tiles[2]);
      if constexpr (kN > 3) step<3>(a, tiles[3]);
    }
    store<kN>(c, stride);
  }

  // Always computes as many rows as the tile registers are configured for; so the first argument, the number of rows, is not needed. If
  // the call has fewer rows, the missing rows are computed from old data in scratch, and their results are not used.
  static void multiply(std::size_t, const std::byte* a, std::size_t steps, const Tile* tiles, std::size_t n,
                       std::size_t, float* c, std::size_t stride) noexcept {
    switch (n) {
      case 1: return multiply_tiles<1>(a, steps, tiles, c, stride);
      case 2: return multiply_tiles<2>(a, steps, tiles, c, stride);
      case 3: return multiply_tiles<3>(a, steps, tiles, c, stride);
      default: return multiply_tiles<4>(a, steps, tiles, c, stride);
    }
  }
};

template <class Product, class Keys, class Values = Keys>
void attend(const AttendJob& job) noexcept {
  const std::size_t queries = job.rows * job.query_group, rows = queries < kTileRows ? queries : kTileRows;
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 6; ++tile) shapes.set(tile, rows, 64);
  shapes.set(6, kTileRows, 64);
  shapes.set(7, kTileRows, 64);
  const Tiles tiles(shapes);
  Attention<Product, Keys, Values>(job).run();
}

}  // namespace
}  // namespace attention

void add_attention(Kernels& kernels) noexcept {
  using namespace attention;
  kernels.attend(Family::bf16x3, KvType::f16) = {attend<TileProduct<2>, HeldF16>, "tiles over key chunks of 256, thrice", kQueries};
  kernels.attend(Family::bf16, KvType::f16) = {attend<TileProduct<1>, HeldF16Rounded>, "tiles over key chunks of 256", kQueries};
  kernels.attend(Family::bf16, KvType::bf16) = {attend<TileProduct<1>, HeldBF16>, "tiles over key chunks of 256", kQueries};
  kernels.attend(Family::bf16, KvType::int8) = {attend<TileProduct<1>, HeldInt8>, "tiles over key chunks of 256", kQueries};
  kernels.attend(Family::bf16, KvType::fp8) = {attend<TileProduct<1>, HeldFp8>, "tiles over key chunks of 256", kQueries};
  kernels.attend(Family::bf16, KvType::int4) = {attend<TileProduct<1>, HeldInt4>, "tiles over key chunks of 256", kQueries};
  kernels.attend(Family::bf16, KvType::k8v4) = {attend<TileProduct<1>, HeldInt8, HeldInt4>, "tiles over key chunks of 256", kQueries};
}

}  // namespace tessera::cpu::TESSERA_ISA
