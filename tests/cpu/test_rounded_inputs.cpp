// Inputs that are rounded as a model's files say: the ends of the ranges.
#include <array>
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "cpu/products/rounded_rows.hpp"

namespace test_rounded_inputs {

using namespace tessera;

std::array<float, 4> rounded(const InputRounding& how, std::array<float, 4> row) {
  std::array<float, 4> out{};
  cpu::round_row(how, 0, row, out.data());
  return out;
}

TEST_CASE("integers with a scale of the file end at -127 and 127", "[cpu]") {
  const InputRounding how{.to = RoundedInputs::int8, .scales = {0.5f}};
  CHECK(rounded(how, {-1000.0f, -64.0f, 64.0f, 1000.0f}) == std::array<float, 4>{-63.5f, -63.5f, 63.5f, 63.5f});
  CHECK(rounded(how, {-63.5f, -0.25f, 0.75f, 63.0f}) == std::array<float, 4>{-63.5f, 0.0f, 1.0f, 63.0f});  // ties go to even numbers
}

TEST_CASE("integers with a zero of the file end at -128 and 127", "[cpu]") {
  const InputRounding how{.to = RoundedInputs::int8_with_zero, .scales = {1.0f}, .zeros = {-5.0f}};
  CHECK(rounded(how, {-1000.0f, 1000.0f, 0.0f, 3.0f}) == std::array<float, 4>{-123.0f, 132.0f, 0.0f, 3.0f});
}

TEST_CASE("FP8 with a scale of the file ends at 448", "[cpu]") {
  const InputRounding how{.to = RoundedInputs::fp8, .scales = {2.0f}};
  CHECK(rounded(how, {-10000.0f, 10000.0f, 898.0f, 18.0f}) == std::array<float, 4>{-896.0f, 896.0f, 896.0f, 18.0f});
}

TEST_CASE("each of several matrices has its own scale", "[cpu]") {
  const InputRounding how{.to = RoundedInputs::int8, .scales = {1.0f, 10.0f}};
  const std::array<float, 2> row = {12.0f, 500.0f};
  std::array<float, 2> first{}, second{};
  cpu::round_row(how, 0, row, first.data());
  cpu::round_row(how, 1, row, second.data());
  CHECK(first == std::array<float, 2>{12.0f, 127.0f});
  CHECK(second == std::array<float, 2>{10.0f, 500.0f});
}

}  // namespace test_rounded_inputs
