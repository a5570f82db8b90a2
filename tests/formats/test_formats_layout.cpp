// Every block format decoded again from the published layout (ggml-common.h, dequantize_row_*), value by value from
// bit positions in double, where all of it is exact and the one rounding comes last.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "formats/formats.hpp"

#include "catch.hpp"

namespace test_formats_layout {

namespace {

using namespace tessera;

class Bits {
 public:
  explicit Bits(const std::byte* block) : block_(block) {}
  // `count` bits from bit `at` of the block, where bit 0 is the lowest of byte 0.
  [[nodiscard]] int get(std::size_t at, std::size_t count) const {
    int value = 0;
    for (std::size_t k = 0; k < count; ++k)
      value |= ((std::to_integer<int>(block_[(at + k) / 8]) >> ((at + k) % 8)) & 1) << k;
    return value;
  }
  [[nodiscard]] int byte(std::size_t at) const { return get(8 * at, 8); }
  [[nodiscard]] int signed_byte(std::size_t at) const { return byte(at) >= 128 ? byte(at) - 256 : byte(at); }
  [[nodiscard]] double half(std::size_t at) const {
    return f16_to_f32(static_cast<std::uint16_t>(get(8 * at, 16)));
  }

 private:
  const std::byte* block_;
};

int nibble_of_32(const Bits& bits, std::size_t qs, std::size_t i) {
  return bits.get(8 * (qs + i % 16) + 4 * (i / 16), 4);
}

int six_bit_scale(const Bits& bits, std::size_t j) {
  return j < 4 ? bits.get(8 * (4 + j), 6) : bits.get(8 * (8 + j), 4) + 16 * bits.get(8 * j + 6, 2);
}
int six_bit_min(const Bits& bits, std::size_t j) {
  return j < 4 ? bits.get(8 * (8 + j), 6) : bits.get(8 * (8 + j) + 4, 4) + 16 * bits.get(8 * (4 + j) + 6, 2);
}
int nibble_of_256(const Bits& bits, std::size_t qs, std::size_t i) {
  return bits.get(8 * (qs + 32 * (i / 64) + i % 32) + 4 * (i / 32 % 2), 4);
}

constexpr int kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Sign, two bits of exponent, one of fraction (OCP Microscaling Formats 1.0, table 5).
double e2m1(int bits) {
  const int exponent = bits >> 1 & 3, fraction = bits & 1;
  const double size = exponent == 0 ? 0.5 * fraction : std::ldexp(1 + 0.5 * fraction, exponent - 1);
  return bits >= 8 && size != 0 ? -size : size;
}

double expected(DType type, const Bits& b, std::size_t i) {
  switch (type) {
    case DType::q8_0: return b.half(0) * b.signed_byte(2 + i);
    case DType::q4_0: return b.half(0) * (nibble_of_32(b, 2, i) - 8);
    case DType::q4_1: return b.half(0) * nibble_of_32(b, 4, i) + b.half(2);
    case DType::q5_0: return b.half(0) * (nibble_of_32(b, 6, i) + 16 * b.get(16 + i, 1) - 16);
    case DType::q5_1: return b.half(0) * (nibble_of_32(b, 8, i) + 16 * b.get(32 + i, 1)) + b.half(2);
    case DType::q4_k:
      return b.half(0) * six_bit_scale(b, i / 32) * nibble_of_256(b, 16, i) - b.half(2) * six_bit_min(b, i / 32);
    case DType::q5_k: {
      const int q = nibble_of_256(b, 48, i) + 16 * b.get(8 * (16 + i % 32) + i / 32, 1);
      return b.half(0) * six_bit_scale(b, i / 32) * q - b.half(2) * six_bit_min(b, i / 32);
    }
    case DType::q6_k: {
      const std::size_t half = i / 128, in = i % 128, group = in / 32;
      const int low = b.get(8 * (64 * half + in % 64) + 4 * (group / 2), 4);
      const int high = b.get(8 * (128 + 32 * half + in % 32) + 2 * group, 2);
      return b.half(208) * b.signed_byte(192 + i / 16) * (low + 16 * high - 32);
    }
    case DType::iq4_nl: return b.half(0) * kIq4[nibble_of_32(b, 2, i)];
    case DType::iq4_xs: {
      const std::size_t j = i / 32;
      const int scale = b.get(8 * (4 + j / 2) + 4 * (j % 2), 4) + 16 * b.get(16 + 2 * j, 2) - 32;
      return b.half(0) * scale * kIq4[nibble_of_32(b, 8 + 16 * j, i % 32)];
    }
    case DType::mxfp4: return std::ldexp(e2m1(nibble_of_32(b, 1, i)), b.byte(0) - 127);
    case DType::nvfp4: {
      const std::size_t j = i / 16, in = i % 16;
      const int exponent = b.get(8 * j + 3, 4), fraction = b.get(8 * j, 3);
      const bool zero = b.byte(j) == 127;
      const double scale = zero ? 0 : exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
      return scale * e2m1(b.get(8 * (4 + 8 * j + in % 8) + 4 * (in / 8), 4));
    }
    case DType::q2_k: {
      const int q = b.get(8 * (16 + 32 * (i / 128) + i % 32) + 2 * (i / 32 % 4), 2), j = static_cast<int>(i / 16);
      return b.half(80) * b.get(8 * static_cast<std::size_t>(j), 4) * q - b.half(82) * b.get(8 * static_cast<std::size_t>(j) + 4, 4);
    }
    case DType::q3_k: {
      const std::size_t j = i / 16;
      const int q = b.get(8 * (32 + 32 * (i / 128) + i % 32) + 2 * (i / 32 % 4), 2) + 4 * b.get(8 * (i % 32) + i / 32, 1) - 4;
      const int scale = b.get(8 * (96 + j % 8) + 4 * (j / 8), 4) + 16 * b.get(8 * (104 + j % 4) + 2 * (j / 4), 2) - 32;
      return b.half(108) * scale * q;
    }
    case DType::tq2_0: return b.half(64) * (b.get(8 * (32 * (i / 128) + i % 32) + 2 * (i / 32 % 4), 2) - 1);
    case DType::tq1_0: {  // a byte is the five digits' number times 256 / 243, rounded up
      const std::size_t byte = i < 160 ? i % 32 : i < 240 ? 32 + (i - 160) % 16 : 48 + (i - 240) % 4;
      const std::size_t digit = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
      double rest = b.byte(byte) / 256.0;
      for (std::size_t k = 0; k < digit; ++k) rest = 3 * rest - std::floor(3 * rest);
      return b.half(52) * (std::floor(3 * rest) - 1);
    }
    default: return std::numeric_limits<double>::quiet_NaN();  // by the goldens alone
  }
}

template <class... Formats>
void for_each_block_format(formats::List<Formats...>, auto&& fn) {
  ((Formats::block_values > 1 ? fn(std::type_identity<Formats>{}) : void()), ...);
}

}  // namespace

TEST_CASE("decoding is the published layout with one rounding") {
  std::mt19937 random(11);
  for_each_block_format(formats::All{}, [&]<class F>(std::type_identity<F>) {
    std::size_t wrong = 0;
    std::vector<std::byte> block(F::block_bytes);
    std::vector<float> values(F::block_values);
    for (int round = 0; round < 2000; ++round) {
      for (auto& byte : block) byte = static_cast<std::byte>(random());
      F::decode(block.data(), values.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<float>(expected(F::dtype, Bits(block.data()), i));
        if (value - value != 0) continue;  // an infinite or NaN scale, or a grid: anything
        wrong += value != values[i];
      }
    }
    INFO(to_string(F::dtype));
    CHECK(wrong == 0);
    std::fill(block.begin(), block.end(), std::byte{});
    const bool has_grid = std::isnan(expected(F::dtype, Bits(block.data()), 0));
    CHECK(has_grid == (to_string(F::dtype).starts_with("IQ") && F::dtype != DType::iq4_nl && F::dtype != DType::iq4_xs));
  });
}

TEST_CASE("grids are what their formats' values come from") {
  // Each point's bytes are levels of its format, no point is there twice, and signs do what they say.
  const auto levels = [](auto grid, auto is_level) {
    std::set<std::uint64_t> points;
    for (const auto point : grid) {
      points.insert(point);
      for (std::size_t i = 0; i < sizeof point; ++i) {
        if (!is_level(static_cast<int>(point >> (8 * i) & 255u))) return false;
      }
    }
    return points.size() == grid.size();
  };
  const auto eights = [](int v) { return v == 8 || v == 25 || v == 43; };
  CHECK(levels(formats::detail::kGridIq2xxs, eights));
  CHECK(levels(formats::detail::kGridIq2xs, eights));
  CHECK(levels(formats::detail::kGridIq2s, eights));
  CHECK(levels(formats::detail::kGridIq1, [](int v) { return v == 120 || v == 128 || v == 136; }));
  CHECK(levels(formats::detail::kGridIq3xxs, [](int v) { return v == 62 || (v % 8 == 4 && v < 62 && v != 60); }));
  CHECK(levels(formats::detail::kGridIq3s, [](int v) { return v % 2 == 1 && v < 16; }));
  for (unsigned signs = 0; signs < 256; ++signs) {
    const std::uint64_t values = formats::detail::signed_values(0x7f2b190862013e0fu, signs);
    for (unsigned i = 0; i < 8; ++i) {
      const int value = static_cast<int>(0x7f2b190862013e0fu >> (8 * i) & 255u);
      CHECK(static_cast<int>(values >> (8 * i) & 255u) - 128 == (signs >> i & 1 ? -value : value));
    }
  }
}

TEST_CASE("blocks have the sizes that GGUF files use") {
  const auto bytes = [](DType type) { return formats::block_of(type)->bytes; };
  CHECK(bytes(DType::f16) == 2);
  CHECK(bytes(DType::bf16) == 2);
  CHECK(bytes(DType::q8_0) == 34);
  CHECK(bytes(DType::q4_0) == 18);
  CHECK(bytes(DType::q4_1) == 20);
  CHECK(bytes(DType::q5_0) == 22);
  CHECK(bytes(DType::q5_1) == 24);
  CHECK(bytes(DType::q4_k) == 144);
  CHECK(bytes(DType::q5_k) == 176);
  CHECK(bytes(DType::q6_k) == 210);
  CHECK(bytes(DType::q2_k) == 84);
  CHECK(bytes(DType::q3_k) == 110);
  CHECK(bytes(DType::iq4_nl) == 18);
  CHECK(bytes(DType::iq4_xs) == 136);
  CHECK(bytes(DType::mxfp4) == 17);
  CHECK(bytes(DType::nvfp4) == 36);
  CHECK(bytes(DType::iq3_xxs) == 98);
  CHECK(bytes(DType::iq3_s) == 110);
  CHECK(bytes(DType::iq2_xxs) == 66);
  CHECK(bytes(DType::iq2_xs) == 74);
  CHECK(bytes(DType::iq2_s) == 82);
  CHECK(bytes(DType::iq1_s) == 50);
  CHECK(bytes(DType::iq1_m) == 56);
  CHECK(bytes(DType::tq1_0) == 54);
  CHECK(bytes(DType::tq2_0) == 66);
  CHECK(!formats::block_of(DType::int8));
}

}  // namespace test_formats_layout
