// Small layers written out by hand: layouts that the packages of test_quantised.cpp's goldens do not have.
#include "catch.hpp"
#include "files/quantised/awq_gemv.hpp"
#include "files/quantised/codebook4.hpp"
#include "files/quantised/codebook_rows.hpp"
#include "files/quantised/gptq.hpp"
#include "files/quantised/packed_integers.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace test_quantised_layouts {

using namespace tessera;
using namespace tessera::detail;

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Decodes the first block of a Q5_0 row: scale and the values before the scale.
std::array<int, 32> integers_of_q5_0(const std::vector<std::byte>& block) {
  std::array<int, 32> values{};
  std::uint32_t high = 0;
  std::memcpy(&high, block.data() + 2, 4);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto byte = static_cast<int>(block[6 + i % 16]);
    values[i] = ((i < 16 ? byte & 15 : byte >> 4) | static_cast<int>(high >> i & 1) << 4) - 16;
  }
  return values;
}

TEST_CASE("AWQ's gemv layout: integers in the order of the inputs, padded scales") {
  // 2 outputs, 32 inputs, one group of 32: 4 words of zero points and 32 scales an output.
  std::vector<std::uint32_t> weights(8, 0x76543210u), zeros(8, 0);
  zeros[0] = 3, zeros[4] = 15;
  std::vector<std::uint16_t> scales(64, 0);
  scales[0] = 0x3c00, scales[32] = 0x4000;  // 1 and 2
  AwqLayer layer{.shape = {2, 32, 32}, .qweight = bytes(weights), .qzeros = bytes(zeros), .scales = bytes(scales)};
  REQUIRE(check_awq_gemv(layer));
  REQUIRE(awq_form(layer) == DType::q5_0);
  std::vector<std::byte> row(22);
  for (const std::uint64_t output : {0u, 1u}) {
    REQUIRE(decode_awq_gemv(layer, output, 1, row));
    CHECK(row[1] == (output == 0 ? std::byte{0x3c} : std::byte{0x40}));
    const auto values = integers_of_q5_0(row);
    for (int i = 0; i < 32; ++i) CHECK(values[static_cast<std::size_t>(i)] == i % 8 - (output == 0 ? 3 : 15));
  }
  CHECK_FALSE(decode_awq_gemv(layer, 2, 1, row));
  AwqLayer shorter = layer;
  shorter.scales = layer.scales.first(126);
  CHECK(check_awq_gemv(shorter).error().code() == ErrorCode::corrupt_file);
  shorter = layer;
  shorter.shape.group = 24;
  CHECK(check_awq_gemv(shorter).error().code() == ErrorCode::unsupported);
}

TEST_CASE("a table for each output: 3 and 4 bits") {
  for (const unsigned bits : {3u, 4u}) {
    std::vector<std::uint32_t> weights(bits * 2);  // 2 outputs, 32 inputs: input i has the integer i modulo 2^bits
    for (unsigned output = 0; output < 2; ++output) {
      for (unsigned i = 0; i < 32 * bits; ++i) {
        const unsigned integer = i / bits % (1u << bits);
        weights[i / 32 * 2 + output] |= (integer >> i % bits & 1u) << i % 32;
      }
    }
    std::vector<std::uint16_t> table(2u << bits);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint16_t>(0x3000 + i);
    CodebookRowsLayer layer{.outputs = 2, .inputs = 32, .bits = bits, .qweight = bytes(weights), .table = bytes(table)};
    REQUIRE(check_codebook_rows(layer));
    CHECK(codebook_rows_form(layer) == DType::f16);
    std::vector<std::uint16_t> rows(64);
    REQUIRE(decode_codebook_rows(layer, 0, 2, std::as_writable_bytes(std::span(rows))));
    for (std::size_t i = 0; i < 64; ++i) CHECK(rows[i] == 0x3000 + (i / 32 << bits) + i % (1u << bits));
    layer.table = layer.table.first(2);
    CHECK(check_codebook_rows(layer).error().code() == ErrorCode::corrupt_file);
    layer.bits = 5;
    CHECK(check_codebook_rows(layer).error().code() == ErrorCode::unsupported);
  }
}

TEST_CASE("GPTQModel's zero points borrow from their neighbours") {
  // One group, 32 inputs and outputs, all integers 1, scales 1. Zero points 0, 5, 0, 0, 1, ...: a word minus 0x11111111.
  const std::vector<std::uint32_t> weights(4 * 32, 0x11111111u);
  std::vector<std::uint32_t> zeros(4, 0x11111150u - 0x11111111u);
  zeros[0] = 0x00010050u - 0x11111111u;
  const std::vector<std::uint16_t> scales(32, 0x3c00);
  GptqLayer layer{.shape = {32, 32, 32}, .version = GptqVersion::v1_words, .symmetric = false, .qweight = bytes(weights), .qzeros = bytes(zeros), .scales = bytes(scales)};
  REQUIRE(check_gptq(layer));
  std::vector<std::byte> row(22);
  const int wanted[] = {0, 5, 0, 0, 1, 0, 0, 0, 0, 5, 1, 1};
  for (std::uint64_t output = 0; output < std::size(wanted); ++output) {
    REQUIRE(decode_gptq(layer, false, output, 1, row));
    CHECK(integers_of_q5_0(row)[7] == 1 - wanted[output]);
  }
}

TEST_CASE("integers of 4 bits that have a byte each") {
  std::vector<std::int8_t> weights(32, -8);
  const std::vector<std::uint16_t> scales{0x3f80};  // 1 in BF16
  PackedIntegersLayer layer{.shape = {1, 32, 32}, .bits = 4, .packed = false, .weight = bytes(weights), .scales = bytes(scales)};
  REQUIRE(check_packed_integers(layer));
  REQUIRE(packed_integers_form(layer, false) == DType::q4_0);
  std::vector<std::byte> row(18);
  std::uint64_t rounded = 0;
  REQUIRE(decode_packed_integers(layer, false, 0, 1, row, rounded));
  CHECK(row[2] == std::byte{0});
  weights[5] = 8;
  const Status beyond = decode_packed_integers(layer, false, 0, 1, row, rounded);
  CHECK(beyond.error().code() == ErrorCode::corrupt_file);
  CHECK(beyond.error().message() == "an integer of output 0 is beyond 4 bits");
}

TEST_CASE("4-bit floats are rounded to the type that bitsandbytes decodes to") {
  std::vector<float> table(16, 1.0f);
  const std::vector<float> absmax{1.0f + 1.0f / 512};
  const std::vector<std::uint8_t> weights(1, 0);
  Codebook4Layer layer{.outputs = 1, .inputs = 2, .form = DType::bf16, .weight = bytes(weights), .table = bytes(table), .absmax = bytes(absmax)};
  REQUIRE(check_codebook4(layer));
  std::array<std::uint16_t, 2> row{};
  REQUIRE(decode_codebook4(layer, 0, 1, std::as_writable_bytes(std::span(row))));
  CHECK(row[0] == 0x3f80);
  layer.form = DType::f16;
  REQUIRE(decode_codebook4(layer, 0, 1, std::as_writable_bytes(std::span(row))));
  CHECK(row[1] == 0x3c02);
}

}  // namespace test_quantised_layouts
