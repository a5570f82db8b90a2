// Attention with vectors: the lanes of a tile are keys or dimensions, each with its own chains (docs/numerics.md).
#include "cpu/kernels/attention/chunks.hpp"
#include "cpu/kernels/bf16.hpp"
#include "cpu/kernels/parts.hpp"
#include "cpu/kernels/simd/simd.hpp"
#include "cpu/kernels/tiles.hpp"

namespace tessera::cpu::TESSERA_ISA {

namespace {

constexpr std::size_t kQueries = 64;
constexpr std::size_t kTileFloats = 16 * 32;
// Rows at once: each has a sum, and the pairs two chains.
constexpr std::size_t kRows = kRegisters == 1 ? 16 : kRegisters == 2 ? 4 : 2;
constexpr std::size_t kPairRows = kRegisters == 1 ? 8 : kRegisters == 2 ? 2 : 1;

TESSERA_INLINE void put_floats(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) {
  store(tile + row * 128, a);
  store(tile + row * 128 + 64, b);
}

// Family f32: one chain over all numbers. Of halves a tile of B is in two parts, of the even and the odd numbers.
template <bool kHalves>
struct Chains {
  static constexpr bool kInterleaves = false;
  static constexpr std::size_t kABytes = kTileFloats * sizeof(float);

  TESSERA_INLINE void put(std::byte* tile, std::size_t row, F32x16 a, F32x16 b) { put_floats(tile, row, a, b); }

  template <std::size_t kR>
  TESSERA_INLINE void multiply_rows(const std::byte* a, const Tile* tiles, std::size_t depth, float* c,
                                    std::size_t stride) {
    F32x16 acc[kR] = {};
    for (std::size_t done = 0; done < depth; done += 32, a += kABytes, tiles += 4) {
      const std::size_t n = depth - done < 32 ? depth - done : 32;
      const std::byte* b = tiles->at;
      const auto add = [&](std::size_t k, F32x16 lanes) TESSERA_LAMBDA {
        TESSERA_UNROLL
        for (std::size_t r = 0; r < kR; ++r) {
          acc[r] = fma(broadcast(value_at<float>(a + r * 128 + k * 4)), lanes, acc[r]);
        }
      };
      if constexpr (kHalves) {
        for (std::size_t k = 0; k < n; k += 2, b += tiles->stride) {
          add(k, load<F32x16>(b));
          if (k + 1 < n) add(k + 1, load<F32x16>(b + kPartBytes));
        }
      } else {
        for (std::size_t k = 0; k < n; ++k, b += tiles->stride) add(k, load<F32x16>(b));
      }
    }
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) store(c + r * stride, acc[r]);
  }

  static void multiply(std::size_t rows, const std::byte* a, std::size_t, const Tile* tiles, std::size_t n,
                       std::size_t depth, float* c, std::size_t stride) noexcept {
    for (std::size_t tile = 0; tile < n; ++tile) {
      by_rows<kRows>(0, rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
        multiply_rows<kR>(a + row * 128, tiles + tile, depth, c + row * stride + tile * 16, stride);
      });
    }
  }
};

// Families bf16 and bf16x3: what tiles do, said with vectors. For each 32 numbers two chains, of the even and the odd
// ones, and their sum is added; denormals are zeros. In two parts, three times: low high, high low, high high.
template <std::size_t kParts>
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
  TESSERA_INLINE void add(const std::byte* a, const std::byte* b, std::size_t b_stride, F32x16 (&acc)[kR]) {
    F32x16 even[kR] = {}, odd[kR] = {};
    for (std::size_t k = 0; k < 16; ++k, a += 8, b += b_stride) {
      const U32x16 pairs = load<U32x16>(b);
      const F32x16 first = even_of(pairs), second = odd_of(pairs);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        even[r] = fma(broadcast(value_at<float>(a + r * 128)), first, even[r]);
        odd[r] = fma(broadcast(value_at<float>(a + r * 128 + 4)), second, odd[r]);
      }
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
        add(a + kPart, tiles->at, tiles->stride, acc);
        add(a, tiles->at + kPartBytes, tiles->stride, acc);
      }
      add(a, tiles->at, tiles->stride, acc);
    }
    TESSERA_UNROLL
    for (std::size_t r = 0; r < kR; ++r) store(c + r * stride, acc[r]);
  }

  [[gnu::noinline]] static void multiply(std::size_t rows, const std::byte* a, std::size_t steps, const Tile* tiles,
                                         std::size_t n, std::size_t, float* c, std::size_t stride) noexcept {
    const FlushDenormals flush;
    for (std::size_t tile = 0; tile < n; ++tile) {
      by_rows<kPairRows>(0, rows, [&]<std::size_t kR>(Count<kR>, std::size_t row) TESSERA_LAMBDA {
        multiply_rows<kR>(a + row * 128, steps, tiles + tile, c + row * stride + tile * 16, stride);
      });
    }
  }
};

template <class Product, class Held>
void attend(const AttendJob& job) noexcept {
  Attention<Product, Held>(job).run();
}

}  // namespace

void add_attention(Kernels& kernels) noexcept {
  constexpr const char *chains = "chains over key chunks of 256", *pairs = "pair chains over key chunks of 256";
  kernels.attend(Family::f32, KvType::f32) = {attend<Chains<false>, HeldF32>, chains, kQueries};
  kernels.attend(Family::f32, KvType::f16) = {attend<Chains<true>, HeldF16AsFloats>, chains, kQueries};
  kernels.attend(Family::bf16x3, KvType::f16) = {attend<PairChains<2>, HeldF16>, pairs, kQueries};
  kernels.attend(Family::bf16, KvType::bf16) = {attend<PairChains<1>, HeldBF16>, pairs, kQueries};
  kernels.attend(Family::bf16, KvType::int8) = {attend<PairChains<1>, HeldInt8>, pairs, kQueries};
}

}  // namespace tessera::cpu::TESSERA_ISA
