// Every block format decoded again from the published layout (ggml-common.h, dequantize_row_*), value by value from
// bit positions in double, where all of it is exact and the one rounding comes last.
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "formats/formats.hpp"

#include "catch.hpp"

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
    default: return 0;
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
        if (value - value != 0) continue;  // an infinite or NaN scale: anything
        wrong += value != values[i];
      }
    }
    INFO(to_string(F::dtype));
    CHECK(wrong == 0);
  });
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
  CHECK(!formats::block_of(DType::int8));
}
