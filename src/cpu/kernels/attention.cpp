// The attention kernels of instruction sets without AMX tiles: for some rows and one KV head, softmax(scale q k) v over chunks of keys.
// This file has the matrix products (scores = queries by keys; weighted sums = weights by values); chunks.hpp has the rest. A vector has
// 16 lanes: 16 keys while scores are computed, 16 dimensions while values are added up. Each lane has its own sum
// (docs/reference/numerics.md).
//
// Keys and values that a product cannot read as they are stored are expanded (converted). If a job has many queries, they are expanded
// once, to scratch, for all queries. If it has few queries, they are expanded in registers each time that they are read.
#include "cpu/kernels/attention/chunks.hpp"
#include "cpu/kernels/attention/rows.hpp"
#include "cpu/kernels/bf16_pairs.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/products/tiles.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace attention {
namespace {

constexpr std::size_t kQueries = 128;
constexpr std::size_t kTileFloats = 16 * 32;
// The number of vectors of sums that the registers hold at once: rows times tiles.
constexpr std::size_t kSums = kRegisters == 1 ? 16 : kRegisters == 2 ? 4 : 2;
constexpr std::size_t kRows = kRegisters == 1 ? 8 : kSums;
constexpr std::size_t kFewQueries = kRegisters < 4 ? 8 : kRows;  // jobs with at most this many queries do not expand to scratch (FewHeld)

// Cuts a product of `rows` rows by `n` tiles (of keys or values) into pieces whose sums fit the registers: at most kMostSums vectors of
// sums, which is rows times tiles. Calls fn(Count<rows>, first row, Count<tiles>, first tile) for each piece.
template <std::size_t kMostRows, std::size_t kMostSums, class Fn>
TESSERA_INLINE void by_sums(std::size_t rows, std::size_t n, Fn fn) {
  by_rows<kMostRows>(rows, [&]<std::size_t kR>(Count<kR> of_rows, std::size_t row) TESSERA_LAMBDA {
    constexpr std::size_t kTiles = kMostSums / kR < 4 ? kMostSums / kR : 4;
    by_panels<kTiles>(n, [&]<std::size_t kT>(Count<kT> of_tiles, std::size_t tile) TESSERA_LAMBDA {
      fn(of_rows, row, of_tiles, tile);
    });
  });
}

TESSERA_INLINE void put_floats(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) {
  store(tile + row * 128, a);
  store(tile + row * 128 + 64, b);
}

// The matrix product of family f32: each sum is one chain of fused multiply-adds over all numbers, in order.
template <class From>
struct Chains {
  static constexpr bool kInterleaves = false;
  static constexpr std::size_t kABytes = kTileFloats * sizeof(float);

  TESSERA_INLINE void put(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) { put_floats(tile, row, a, b); }

  template <std::size_t kR, std::size_t kT>
  TESSERA_INLINE void multiply_rows(const std::byte* a, const Tile* tiles, std::size_t depth, float* c,
                                    std::size_t stride) {
    F32x16 acc[kR][kT] = {};
    for (std::size_t done = 0; done < depth; done += 32, a += kABytes, tiles += 4) {
      const std::size_t n = depth - done < 32 ? depth - done : 32;
      const std::byte* at[kT];
      for (std::size_t t = 0; t < kT; ++t) at[t] = tiles[t].at;
      for (std::size_t k = 0; k < n; k += 2) {
        const bool is_last = k + 1 == n;  // no second number follows
        F32x16Pair b[kT];
        TESSERA_UNROLL
        for (std::size_t t = 0; t < kT; ++t) {
          b[t] = From::two(at[t], is_last ? 0 : tiles[t].stride);
          for (std::size_t row = 0; row < From::kRowsOfTwo; ++row, at[t] += tiles[t].stride) {
            __builtin_prefetch(at[t] + tiles[t].ahead);
          }
        }
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          const F32x16 value = broadcast(value_at<float>(a + r * 128 + k * 4));
          TESSERA_UNROLL
          for (std::size_t t = 0; t < kT; ++t) acc[r][t] = fma(value, b[t].even, acc[r][t]);
        }
        if (is_last) break;
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          const F32x16 value = broadcast(value_at<float>(a + r * 128 + k * 4 + 4));
          TESSERA_UNROLL
          for (std::size_t t = 0; t < kT; ++t) acc[r][t] = fma(value, b[t].odd, acc[r][t]);
        }
      }
    }
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      From::in_order(acc[r]);
      TESSERA_UNROLL
      for (std::size_t t = 0; t < kT; ++t) store(c + r * stride + t * 16, acc[r][t]);
    }
  }

  static void multiply(std::size_t rows, const std::byte* a, std::size_t, const Tile* tiles, std::size_t n,
                       std::size_t depth, float* c, std::size_t stride) noexcept {
    by_sums<kRows, kSums>(rows, n, [&]<std::size_t kR, std::size_t kT>(Count<kR>, std::size_t row, Count<kT>,
                                                                       std::size_t tile) TESSERA_LAMBDA {
      multiply_rows<kR, kT>(a + row * 128, tiles + tile, depth, c + row * stride + tile * 16, stride);
    });
  }
};

// The matrix product of families bf16 and bf16x3, with vectors that compute the same bits as AMX's tile unit. A sum takes 32 numbers at a
// time: one chain adds up the products of the even numbers, another chain those of the odd numbers, and the sum of both chains is added
// to the result. Denormals count as zeros. If kParts is 2 (bf16x3), each number is the sum of a high and a low bf16. Then every 32
// numbers are multiplied three times: low by high parts, high by low, high by high. (Low by low is too small to matter.)
template <std::size_t kParts, class From>
struct PairChains {
  static constexpr bool kInterleaves = false;
  static constexpr std::size_t kPart = kTileFloats * sizeof(float);
  static constexpr std::size_t kABytes = kParts * kPart;

  TESSERA_INLINE void put(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) {
    const U32x16 high_a = to_bf16(a), high_b = to_bf16(b);
    put_floats(tile, row, as<F32x16>(high_a), as<F32x16>(high_b));
    if constexpr (kParts == 2) {
      put_floats(tile + kPart, row, as<F32x16>(to_bf16(a - as<F32x16>(high_a))),
                 as<F32x16>(to_bf16(b - as<F32x16>(high_b))));
    }
  }

  template <std::size_t kR>
  TESSERA_INLINE void add(const std::byte* a, const Tile& tile, std::size_t part, F32x16 (&acc)[kR]) {
    F32x16 even[kR] = {}, odd[kR] = {};
    const auto chains = [&](auto... both) TESSERA_LAMBDA {
      const std::byte* from = a;
      const std::byte* b = tile.at + part;
      for (std::size_t k = 0; k < 16; ++k, from += 8, b += tile.stride) {
        const F32x16Pair two = From::two(b, 0);
        __builtin_prefetch(b + tile.ahead);
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) (both(from + r * 128, two, r), ...);
      }
    };
    const auto add_even = [&](const std::byte* from, const F32x16Pair& two, std::size_t r) TESSERA_LAMBDA {
      even[r] = fma(broadcast(value_at<float>(from)), two.even, even[r]);
    };
    const auto add_odd = [&](const std::byte* from, const F32x16Pair& two, std::size_t r) TESSERA_LAMBDA {
      odd[r] = fma(broadcast(value_at<float>(from + 4)), two.odd, odd[r]);
    };
    if constexpr (kRegisters == 1) {
      chains(add_even, add_odd);
    } else {  // the registers hold only half of the chains
      chains(add_even);
      chains(add_odd);
    }
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) acc[r] = acc[r] + (even[r] + odd[r]);
  }

  template <std::size_t kR>
  TESSERA_INLINE void multiply_rows(const std::byte* a, std::size_t steps, const Tile* tiles, float* c,
                                    std::size_t stride) {
    F32x16 acc[kR] = {};
    for (std::size_t step = 0; step < steps; ++step, a += kABytes, tiles += 4) {
      if constexpr (kParts == 2) {
        add(a + kPart, *tiles, 0, acc);
        add(a, *tiles, kPartBytes, acc);
      }
      add(a, *tiles, 0, acc);
    }
    From::in_order(acc);
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) store(c + r * stride, acc[r]);
  }

  [[gnu::noinline]] static void multiply(std::size_t rows, const std::byte* a, std::size_t steps, const Tile* tiles,
                                         std::size_t n, std::size_t, float* c, std::size_t stride) noexcept {
    const FlushDenormals flush;
    for (std::size_t tile = 0; tile < n; ++tile) {
      by_rows<kRows>(rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
        multiply_rows<kR>(a + row * 128, steps, tiles + tile, c + row * stride + tile * 16, stride);
      });
    }
  }
};

#if defined(__AVX512BF16__)
// The matrix product of family bf16-pairs: each sum is one chain over pairs of numbers (bf16_pairs.hpp).
template <class From>
struct Pairs {
  static constexpr bool kInterleaves = false;
  static constexpr std::size_t kABytes = kTileFloats * 2;

  TESSERA_INLINE void put(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) {
    store_high_parts(tile + row * 64, a, b);
  }

  template <std::size_t kR, std::size_t kT>
  TESSERA_INLINE void multiply_rows(const std::byte* a, std::size_t steps, const Tile* tiles, float* c,
                                    std::size_t stride) {
    F32x16 acc[kR][kT] = {};
    for (std::size_t step = 0; step < steps; ++step, a += kABytes, tiles += 4) {
      const std::byte* at[kT];
      for (std::size_t t = 0; t < kT; ++t) at[t] = tiles[t].at;
      for (std::size_t k = 0; k < 16; ++k) {
        U32x16 b[kT];
        From::bf16(at, b);
        TESSERA_UNROLL
        for (std::size_t t = 0; t < kT; ++t) {
          __builtin_prefetch(at[t] + tiles[t].ahead);
          at[t] += tiles[t].stride;
        }
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          const auto value = value_at<std::uint32_t>(a + r * 64 + k * 4);
          TESSERA_UNROLL
          for (std::size_t t = 0; t < kT; ++t) acc[r][t] = dot_pairs(acc[r][t], b[t], value);
        }
      }
    }
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) {
      From::in_order(acc[r]);
      TESSERA_UNROLL
      for (std::size_t t = 0; t < kT; ++t) store(c + r * stride + t * 16, acc[r][t]);
    }
  }

  static void multiply(std::size_t rows, const std::byte* a, std::size_t steps, const Tile* tiles, std::size_t n,
                       std::size_t, float* c, std::size_t stride) noexcept {
    by_sums<kRows, kSums>(rows, n, [&]<std::size_t kR, std::size_t kT>(Count<kR>, std::size_t row, Count<kT>,
                                                                       std::size_t tile) TESSERA_LAMBDA {
      multiply_rows<kR, kT>(a + row * 64, steps, tiles + tile, c + row * stride + tile * 16, stride);
    });
  }
};
#endif

template <class Product, class Keys, class Values = Keys>
void attend(const AttendJob& job) noexcept {
  Attention<Product, Keys, Values>(job).run();
}

// Computes a job. If it has few queries, keys and values are read as pages hold them (FewHeld); if many, they are read expanded (Held).
template <class FewProduct, class FewHeld, class Product, class Held>
void attend_as_suits(const AttendJob& job) noexcept {
  if (job.rows * job.query_group <= kFewQueries) attend<FewProduct, FewHeld>(job);
  else attend<Product, Held>(job);
}

}  // namespace
}  // namespace attention

void add_attention(Kernels& kernels) noexcept {
  using namespace attention;
  constexpr const char *chains = "chains over key chunks of 256", *pairs = "pair chains over key chunks of 256";
  const auto add = [&](Family family, KvType type, void (*run)(const AttendJob&) noexcept, const char* name) {
    kernels.attend(family, type) = {run, name, kQueries};
  };
  add(Family::f32, KvType::f32, attend<Chains<RowsOfFloats>, HeldF32>, chains);
  add(Family::f32, KvType::f16,
      attend_as_suits<Chains<PairsOfHalves>, HeldHalves, Chains<HalvesAsFloats>, HeldF16AsFloats>, chains);
  add(Family::bf16x3, KvType::f16, attend<PairChains<2, PairsOfBf16>, HeldF16>, pairs);
  add(Family::bf16, KvType::bf16, attend<PairChains<1, PairsOfBf16>, HeldBF16>, pairs);
  add(Family::bf16, KvType::int8,
      attend_as_suits<PairChains<1, PairsOfBytes>, HeldBytes, PairChains<1, PairsOfBf16>, HeldInt8>, pairs);
  add(Family::bf16, KvType::fp8, attend<PairChains<1, PairsOfBf16>, HeldFp8>, pairs);
  add(Family::bf16, KvType::int4, attend<PairChains<1, PairsOfBf16>, HeldInt4>, pairs);
  add(Family::bf16, KvType::k8v4, attend<PairChains<1, PairsOfBf16>, HeldInt8, HeldInt4>, pairs);
#if defined(__AVX512BF16__)
  if (!pairs_are_as_written()) return;
  constexpr const char* dots = "pairs over key chunks of 256";
  add(Family::bf16_pairs, KvType::bf16, attend<Pairs<Bf16AsItLies>, HeldBF16>, dots);
  add(Family::bf16_pairs, KvType::f16,
      attend_as_suits<Pairs<Bf16OfHalves>, HeldHalves, Pairs<Bf16AsItLies>, HeldF16Rounded>, dots);
  add(Family::bf16_pairs, KvType::int8,
      attend_as_suits<Pairs<Bf16OfBytes>, HeldBytes, Pairs<Bf16AsItLies>, HeldInt8>, dots);
  add(Family::bf16_pairs, KvType::fp8, attend<Pairs<Bf16AsItLies>, HeldFp8>, dots);
  add(Family::bf16_pairs, KvType::int4, attend<Pairs<Bf16AsItLies>, HeldInt4>, dots);
  add(Family::bf16_pairs, KvType::k8v4, attend<Pairs<Bf16AsItLies>, HeldInt8, HeldInt4>, dots);
#endif
}

}  // namespace tessera::cpu::TESSERA_ISA
