// Encoding with importance: the error where it matters gets less, and what importance cannot be does no harm.
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <tessera/extend/formats/rows.hpp>
#include <tessera/unstable/formats/weighted_rows.hpp>

#include "catch.hpp"

namespace test_formats_importance {

using namespace tessera;
using formats::encode_weighted_row;

namespace {

constexpr DType kGuided[] = {DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl,
                             DType::iq4_xs, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1};
constexpr std::size_t kImportanceValues = 2048;

std::vector<std::byte> encoded(DType type, const std::vector<float>& values, const std::vector<float>& importance) {
  const auto block = *formats::block_of(type);
  std::vector<std::byte> bytes(values.size() / block.values * block.bytes);
  REQUIRE((importance.empty() ? formats::encode_row(type, values, bytes) : encode_weighted_row(type, values, importance, bytes)));
  return bytes;
}

double weighted_error(DType type, const std::vector<float>& values, const std::vector<float>& importance,
                      const std::vector<std::byte>& bytes) {
  std::vector<float> back(values.size());
  REQUIRE(formats::decode_row(type, bytes, back));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double miss = double{values[i]} - double{back[i]};
    REQUIRE(std::isfinite(miss));
    sum += double{importance[i]} * miss * miss;
  }
  return sum;
}

}  // namespace

TEST_CASE("importance lowers the error of what is important") {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  for (const DType type : kGuided) {
    CAPTURE(to_string(type));
    CHECK(formats::heeds_importance(type));
    double with = 0, without = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<float> values(kImportanceValues), importance(kImportanceValues);
      for (float& value : values) value = 0.02f * normal(random);
      for (float& value : importance) value = std::exp(3.0f * normal(random));  // as uneven as inputs are
      with += weighted_error(type, values, importance, encoded(type, values, importance));
      without += weighted_error(type, values, importance, encoded(type, values, {}));
    }
    INFO("with " << with << ", without " << without);
    CHECK(with < 0.93 * without);
  }
}

TEST_CASE("importance of nothing, and what is none, encodes as without; its scale does not matter") {
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  std::vector<float> values(kImportanceValues), importance(kImportanceValues), scaled(kImportanceValues);
  for (float& value : values) value = normal(random);
  const std::vector<float> nothing(kImportanceValues, 0.0f);
  const std::vector<float> none(kImportanceValues, -1.0f), nan(kImportanceValues, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < kImportanceValues; ++i) {
    importance[i] = std::abs(normal(random));
    scaled[i] = 0x1p90f * importance[i];
  }
  for (const DType type : formats::all()) {
    if (!formats::writing_of(type)) continue;
    CAPTURE(to_string(type));
    const auto plain = encoded(type, values, {});
    for (const auto& zero : {nothing, none, nan}) CHECK(encoded(type, values, zero) == plain);
    CHECK(encoded(type, values, importance) == encoded(type, values, scaled));
    if (!formats::heeds_importance(type)) CHECK(encoded(type, values, importance) == plain);
  }
}

TEST_CASE("importance that is infinite, or of one value alone, gives finite weights") {
  std::mt19937 random(14);
  for (const DType type : kGuided) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> values(256), importance(256);
      for (float& value : values) {
        const float extremes[] = {0, 1e-40f, 1e30f, -3e38f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
        value = random() % 3 == 0 ? extremes[random() % 6] : static_cast<float>(random() % 100) - 50;
      }
      for (float& value : importance) value = random() % 4 == 0 ? std::numeric_limits<float>::infinity() : static_cast<float>(random() % 2);
      const auto bytes = encoded(type, values, importance);
      std::vector<float> back(256);
      REQUIRE(formats::decode_row(type, bytes, back));
      for (const float value : back) REQUIRE(std::isfinite(value));
    }
  }
}

TEST_CASE("sizes that do not fit are refused") {
  std::vector<float> values(256), importance(255);
  std::vector<std::byte> bytes(84);
  CHECK(encode_weighted_row(DType::q2_k, values, importance, bytes).error().code() == ErrorCode::invalid_argument);
  importance.resize(256);
  CHECK(encode_weighted_row(DType::q2_k, values, importance, bytes));
  bytes.resize(85);
  CHECK(encode_weighted_row(DType::q2_k, values, importance, bytes).error().code() == ErrorCode::invalid_argument);
  CHECK(encode_weighted_row(DType::iq2_xs, values, importance, bytes).error().code() == ErrorCode::invalid_argument);
}

}  // namespace test_formats_importance
