// Every weight format against gguf-py (tests/golden/make_format_goldens.py): the same values from the same blocks, and
// the same blocks from the same values where gguf-py can encode. Equality is bitwise: products of a format's integers
// and scales are exact in f32 and what remains is one rounding, which leaves no room for another order of operations.
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/formats.hpp"

#include "catch.hpp"

namespace test_formats_golden {

namespace {

using namespace tessera;

std::filesystem::path golden(DType type, const char* suffix) {
  const std::filesystem::path directory = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/golden/data/formats";
  return directory / (std::string(to_string(type)) + suffix);
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  INFO(path.string());
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::vector<float> read_floats(const std::filesystem::path& path) {
  const auto bytes = read_bytes(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

template <class F>
std::size_t bitwise_mismatches(const std::vector<std::byte>& blocks, const std::vector<float>& expected) {
  REQUIRE(blocks.size() % F::block_bytes == 0);
  REQUIRE(blocks.size() / F::block_bytes * F::block_values == expected.size());
  std::vector<float> values(expected.size());
  for (std::size_t b = 0; b < blocks.size() / F::block_bytes; ++b)
    F::decode(blocks.data() + b * F::block_bytes, values.data() + b * F::block_values);
  std::size_t mismatches = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    mismatches += std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(expected[i]);
  return mismatches;
}

}  // namespace

TEST_CASE("every format decodes random blocks to the bits that gguf-py gives") {
  formats::for_each(formats::All{}, []<class F>(std::type_identity<F>) {
    if (F::dtype == DType::f32) return;
    INFO(to_string(F::dtype));
    CHECK(bitwise_mismatches<F>(read_bytes(golden(F::dtype, ".bin")), read_floats(golden(F::dtype, ".f32"))) == 0);
  });
}

TEST_CASE("every format that gguf-py can encode encodes to the same bytes") {
  std::size_t tested = 0;
  formats::for_each(formats::All{}, [&]<class F>(std::type_identity<F>) {
    if constexpr (formats::has_encoder<F>) {
      if (!std::filesystem::exists(golden(F::dtype, ".src.f32"))) return;
      INFO(to_string(F::dtype));
      const auto source = read_floats(golden(F::dtype, ".src.f32"));
      const auto expected = read_bytes(golden(F::dtype, ".enc.bin"));
      REQUIRE(source.size() / F::block_values * F::block_bytes == expected.size());
      std::vector<std::byte> encoded(expected.size());
      for (std::size_t b = 0; b < source.size() / F::block_values; ++b) {
        F::encode(source.data() + b * F::block_values, encoded.data() + b * F::block_bytes);
        INFO("block " << b);
        const std::size_t at = b * F::block_bytes;
        CHECK(std::memcmp(encoded.data() + at, expected.data() + at, F::block_bytes) == 0);
      }
      ++tested;
    }
  });
  CHECK(tested == 8);
}

}  // namespace test_formats_golden
