// Rotates keys and values before they are stored in few bits (INT8, INT4). A rotation is a multiplication by a Hadamard matrix H
// (Sylvester's). It spreads an outlier in one dimension over all dimensions, so that one large number does not make the common scale too
// coarse for the other numbers. Scores do not change if the query is rotated too. Attention does not rotate values back one by one: it
// computes the weighted sum of rotated values, and rotates the sum back once.
//
// Groups of n neighbouring dimensions of a head are rotated together. n is the largest power of two that divides the head's dimension (128:
// one group of 128; 80: five groups of 16; 96: three of 32). If n is below 8, nothing is rotated. H times H is n times the identity, so a
// rotation and its inverse differ only in the factor by which the sums are multiplied. The two factors multiply to 1 / n; both are powers
// of two, so multiplying by them rounds nothing. The order of additions is the same on every machine: first numbers that are 1 apart are
// added and subtracted, then numbers that are 2, 4, ... apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::kv {

enum class Turn : std::uint8_t {
  in = 0,   // rotates numbers that are going to be stored
  out = 1,  // rotates back numbers that were stored, and rotates queries, which are multiplied by stored keys
};

inline constexpr std::size_t kLeastRotated = 8;

// Returns how many neighbouring dimensions are rotated together; 1 if nothing is rotated.
[[nodiscard, gnu::always_inline]] constexpr std::size_t rotated_together(std::size_t dim) noexcept {
  const std::size_t n = dim & (~dim + 1);
  return n < kLeastRotated ? 1 : n;
}

// Returns the factor by which a rotation of n dimensions multiplies its sums (n is a power of two). If n is 2^(2k): 2^-k in both
// directions. If n is 2^(2k + 1): 2^-k for Turn::in (before storing) and 2^-(k + 1) for Turn::out (back).
[[nodiscard, gnu::always_inline]] constexpr float rotation_factor(std::size_t n, Turn turn) noexcept {
  float factor = 1.0f;
  for (; n >= 4; n /= 4) factor *= 0.5f;
  return n == 2 && turn == Turn::out ? factor * 0.5f : factor;
}

// Rotates the first `lanes` columns of x  [dim][stride]. Each column has the numbers of one token or head.
[[gnu::always_inline]] constexpr void rotate_lanes(float* x, std::size_t dim, std::size_t stride, std::size_t lanes,
                                                   Turn turn) noexcept {
  const std::size_t n = rotated_together(dim);
  if (n == 1) return;
  for (std::size_t apart = 1; apart < n; apart *= 2) {
    for (std::size_t d = 0; d < dim; d += d % (2 * apart) == apart - 1 ? apart + 1 : 1) {
      float *one = x + d * stride, *other = one + apart * stride;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const float a = one[lane], b = other[lane];
        one[lane] = a + b;
        other[lane] = a - b;
      }
    }
  }
  const float factor = rotation_factor(n, turn);
  for (std::size_t d = 0; d < dim; ++d) {
    for (std::size_t lane = 0; lane < lanes; ++lane) x[d * stride + lane] *= factor;
  }
}

// Rotates the numbers of one token and head  [dim].
[[gnu::always_inline]] constexpr void rotate(float* x, std::size_t dim, Turn turn) noexcept {
  const std::size_t n = rotated_together(dim);
  if (n == 1) return;
  for (std::size_t d = 0; d < dim; d += 8) {  // adds and subtracts numbers 1, 2 and 4 apart
    float* v = x + d;
    const float a = v[0] + v[1], b = v[0] - v[1], c = v[2] + v[3], e = v[2] - v[3];
    const float f = v[4] + v[5], g = v[4] - v[5], h = v[6] + v[7], i = v[6] - v[7];
    const float ac = a + c, be = b + e, a_c = a - c, b_e = b - e, fh = f + h, gi = g + i, f_h = f - h, g_i = g - i;
    v[0] = ac + fh, v[1] = be + gi, v[2] = a_c + f_h, v[3] = b_e + g_i;
    v[4] = ac - fh, v[5] = be - gi, v[6] = a_c - f_h, v[7] = b_e - g_i;
  }
  for (std::size_t apart = 8; apart < n; apart *= 2) {
    for (float* block = x; block < x + dim; block += 2 * apart) {
      for (std::size_t d = 0; d < apart; d += 8) {
        for (std::size_t i = d; i < d + 8; ++i) {
          const float a = block[i], b = block[i + apart];
          block[i] = a + b;
          block[i + apart] = a - b;
        }
      }
    }
  }
  const float factor = rotation_factor(n, turn);
  for (std::size_t d = 0; d < dim; ++d) x[d] *= factor;
}

}  // namespace tessera::kv
