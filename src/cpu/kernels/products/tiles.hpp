// Helpers of the matrix products with vectors: they cut rows and panels into tiles whose sums fit the registers, multiply 8-bit integers in
// groups of four, and store the outputs.
#pragma once

#include "cpu/kernels.hpp"
#include "cpu/kernels/simd/simd.hpp"

namespace tessera::cpu::TESSERA_ISA {

// A number as a type, for templates.
template <std::size_t kValue>
struct Count {
  static constexpr std::size_t value = kValue;
};

// Calls fn(Count<n>). Precondition: n is from 1 to kMost.
template <std::size_t kMost, class Fn>
TESSERA_INLINE void with_count(std::size_t n, Fn fn) {
  if constexpr (kMost > 1) {
    if (n < kMost) return with_count<kMost - 1>(n, fn);
  }
  fn(Count<kMost>{});
}

// Cuts rows into as few tiles of up to kMost rows as possible, all of about one size. Calls fn(Count<rows of the tile>, first row) for each
// tile.
template <std::size_t kMost, class Fn>
TESSERA_INLINE void by_rows(std::size_t rows, Fn fn) {
  for (std::size_t row = 0, tiles = (rows + kMost - 1) / kMost; row < rows; --tiles) {
    const std::size_t n = (rows - row + tiles - 1) / tiles;
    with_count<kMost>(n, [&](auto count) TESSERA_LAMBDA { fn(count, row); });
    row += n;
  }
}

// Calls fn(Count<panels>, first panel) for all panels (or vectors): for kPanels at a time, then for the rest one by one.
template <std::size_t kPanels, class Fn>
TESSERA_INLINE void by_panels(std::size_t panels, Fn fn) {
  std::size_t panel = 0;
  for (; panel + kPanels <= panels; panel += kPanels) fn(Count<kPanels>{}, panel);
  if constexpr (kPanels > 1) {
    for (; panel < panels; ++panel) fn(Count<1>{}, panel);
  }
}

// Adds to sum[r][p]: factor(p) times the products of row r and panel p, over kGroups groups of four values of k, from group `begin` on.
// weights(p, g) returns group g of panel p. factor(p) returns each lane's factor, in both 16-bit words of the lane. `q`: the rows' bytes
// at group 0. For speed, products are first added up in 16-bit words, for as many groups as cannot make a word overflow: a group adds two
// products to a word, at most 2 * (2^kBits - 1) * 127.
template <unsigned kBits, std::size_t kGroups, std::size_t kR, std::size_t kP, class Weights, class Factor>
TESSERA_INLINE void multiply_pairs(std::size_t begin, Weights weights, Factor factor, const std::byte* q,
                                   std::size_t stride, I32x16 (&sum)[kR][kP]) {
  constexpr std::size_t kHeld = kBits == 4 ? 8 : kBits == 5 ? 4 : 2, kStep = kHeld < kGroups ? kHeld : kGroups;
  static_assert(kHeld * 2 * ((1 << kBits) - 1) * 127 < 1 << 15 && kGroups % kStep == 0);
  TESSERA_UNROLL
  for (std::size_t first = begin; first < begin + kGroups; first += kStep) {
    I32x16 words[kR][kP];
    TESSERA_UNROLL
    for (std::size_t g = first; g < first + kStep; ++g) {
      U8x64 w[kP];
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) w[p] = kept(weights(p, g));
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) {
        const I32x16 x = broadcast4(q + r * stride + 4 * g);
        TESSERA_UNROLL
        for (std::size_t p = 0; p < kP; ++p) {
          const I32x16 pairs = pair_products(w[p], x);
          words[r][p] = kept(g == first ? pairs : add_words(words[r][p], pairs));
        }
      }
    }
    TESSERA_UNROLL
    for (std::size_t p = 0; p < kP; ++p) {
      const I32x16 by = factor(p);
      TESSERA_UNROLL
      for (std::size_t r = 0; r < kR; ++r) sum[r][p] = kept(dot2(sum[r][p], words[r][p], by));
    }
  }
}

// Adds to dot[r][p] the products of row r and panel p over one group of four values of k. weights(p) returns the group of panel p.
template <unsigned kBits, std::size_t kR, std::size_t kP, class Weights>
TESSERA_INLINE void multiply_group(Weights weights, const std::byte* q, std::size_t stride, I32x16 (&dot)[kR][kP]) {
  U8x64 w[kP];
  TESSERA_UNROLL
  for (std::size_t p = 0; p < kP; ++p) w[p] = kept(weights(p));
  TESSERA_UNROLL
  for (std::size_t r = 0; r < kR; ++r) {
    if constexpr (kP == 1) {
      dot[r][0] = kept(dot4_at<kBits>(dot[r][0], w[0], q + r * stride));
    } else {
      const I32x16 x = broadcast4(q + r * stride);
      TESSERA_UNROLL
      for (std::size_t p = 0; p < kP; ++p) dot[r][p] = kept(dot4<kBits>(dot[r][p], w[p], x));
    }
  }
}

// Adds to dot[r][p] the products of row r and panel p over kGroups groups of four values of k, as integers. weights(p, g) returns group g
// of panel p. `q`: the 8-bit integers of the first row at group 0; later rows lie `stride` bytes apart.
template <unsigned kBits, std::size_t kGroups, std::size_t kR, std::size_t kP, class Weights>
TESSERA_INLINE void multiply_groups(Weights weights, const std::byte* q, std::size_t stride, I32x16 (&dot)[kR][kP]) {
  if constexpr (kPairs && kBits <= 6) {
    const auto one = [](std::size_t) TESSERA_LAMBDA { return broadcast(0x00010001); };
    multiply_pairs<kBits, kGroups>(0, weights, one, q, stride, dot);
  } else {
    TESSERA_UNROLL
    for (std::size_t g = 0; g < kGroups; ++g) {
      multiply_group<kBits>([&](std::size_t p) TESSERA_LAMBDA { return weights(p, g); }, q + 4 * g, stride, dot);
    }
  }
}

// Load and store the sums of a tile, which are kept in scratch [rows][vectors][16 outputs]. The tile has kP of the `vectors` vectors.
template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void load_sums(const std::byte* from, std::size_t vectors, F32x16 (&acc)[kR][kP]) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kR * kP; ++i) acc[i / kP][i % kP] = load<F32x16>(from + 64 * (i / kP * vectors + i % kP));
}
template <std::size_t kR, std::size_t kP>
TESSERA_INLINE void store_sums(std::byte* to, std::size_t vectors, const F32x16 (&acc)[kR][kP]) {
  TESSERA_UNROLL
  for (std::size_t i = 0; i < kR * kP; ++i) store(to + 64 * (i / kP * vectors + i % kP), acc[i / kP][i % kP]);
}

// Stores one row's outputs from 16 * vector on: 16 of them, or fewer at the end of the job's outputs. Stores nothing beyond that end, where
// the second half of an f16 panel may lie.
TESSERA_INLINE void store_outputs(const LinearJob& job, std::size_t row, std::size_t vector, F32x16 values) {
  const std::size_t column = vector * kPanel;
  if (column < job.outputs) store_some(job.out + row * job.out_stride + column, values, job.outputs - column);
}

// Stores all sums, which are at the start of scratch as [rows][kVectors vectors][16 outputs], as the job's outputs from 16 * vector on.
template <std::size_t kVectors>
TESSERA_INLINE void store_all_outputs(const LinearJob& job, std::size_t vector) {
  const auto sums = [&](std::size_t row, std::size_t v) TESSERA_LAMBDA {
    return load<F32x16>(job.scratch + (row * kVectors + v) * 64);
  };
  if (job.past_caches() && job.outputs >= (vector + kVectors) * kPanel) {
    for (std::size_t row = 0; row < job.rows; ++row) {
      float* to = job.out + row * job.out_stride + vector * kPanel;
      for (std::size_t v = 0; v < kVectors; ++v) store_past_caches(to + v * kPanel, sums(row, v));
    }
    native::fence_stores();
    return;
  }
  for (std::size_t row = 0; row < job.rows; ++row) {
    for (std::size_t v = 0; v < kVectors; ++v) store_outputs(job, row, vector + v, sums(row, v));
  }
}

}  // namespace tessera::cpu::TESSERA_ISA
