// What encoders promise: how near the values stay, that a second encoding changes nothing, that no input is too
// hostile, and that the K-quants' search is worth its time.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <tessera/extend/formats/rows.hpp>

#include "formats/formats.hpp"

#include "catch.hpp"

namespace test_formats_encode {

namespace {

using namespace tessera;

// Calls fn(std::type_identity<Format>{}) for all formats that can be written.
void for_each_written(auto&& fn) {
  formats::for_each(formats::All{}, [&]<class F>(std::type_identity<F> format) {
    if constexpr (formats::has_encoder<F>) fn(format);
  });
}

template <class F>
std::vector<float> round_trip(const std::vector<float>& values) {
  std::vector<std::byte> blocks(values.size() / F::block_values * F::block_bytes);
  std::vector<float> decoded(values.size());
  REQUIRE(formats::encode_row(F::dtype, values, blocks));
  REQUIRE(formats::decode_row(F::dtype, blocks, decoded));
  return decoded;
}

std::vector<float> normal_values(std::size_t n, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (auto& value : values) {  // Irwin-Hall: near enough to normal, and the same on every machine
    float sum = 0;
    for (int k = 0; k < 12; ++k) sum += static_cast<float>(random() >> 8) * 0x1p-24f;
    value = (sum - 6.0f) * scale;
  }
  return values;
}

double relative_rmse(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    size += static_cast<double>(a[i]) * a[i];
  }
  return std::sqrt(error / size);
}

// A K-quant without the search: each sub-block's range (or extreme) taken as it is, scales rounded to 6 (or 8) bits.
std::vector<float> plain_k_quant(DType type, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  const std::size_t width = type == DType::q6_k ? 16 : 32, n_sub = 256 / width;
  const float levels = type == DType::q4_k ? 15 : 31;
  for (std::size_t base = 0; base < values.size(); base += 256) {
    std::vector<float> scale(n_sub), min(n_sub);
    float top_scale = 0, top_min = 0;
    for (std::size_t j = 0; j < n_sub; ++j) {
      float low = 0, high = 0;
      for (std::size_t i = 0; i < width; ++i) {
        low = std::fmin(low, values[base + j * width + i]);
        high = std::fmax(high, values[base + j * width + i]);
      }
      scale[j] = type == DType::q6_k ? std::fmax(high, -low) / 32 : (high - low) / levels;
      min[j] = type == DType::q6_k ? 0 : -low;
      top_scale = std::fmax(top_scale, scale[j]);
      top_min = std::fmax(top_min, min[j]);
    }
    const float grid = type == DType::q6_k ? 127.0f : 63.0f;
    const float d = f16_to_f32(f32_to_f16(top_scale / grid)), dmin = f16_to_f32(f32_to_f16(top_min / grid));
    for (std::size_t j = 0; j < n_sub; ++j) {
      const float s = d * std::round(scale[j] / d), m = top_min > 0 ? dmin * std::round(min[j] / dmin) : 0;
      for (std::size_t i = 0; i < width; ++i) {
        const float q = std::round((values[base + j * width + i] + m) / s);
        const float bottom = type == DType::q6_k ? -32.0f : 0.0f;
        const float limited = std::fmin(levels, std::fmax(bottom, q));
        out[base + j * width + i] = s * limited - m;
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("normal values keep the accuracy of their format") {
  // Relative root mean square error, measured with these values; ggml's reference has 0.0712, 0.0360, 0.0178 for the
  // K-quants of normal values.
  const auto limit = [](DType type) {
    switch (type) {
      case DType::f32: return 0.0;
      case DType::f16: return 0.00022;
      case DType::bf16: return 0.0018;
      case DType::q8_0: return 0.0056;
      case DType::q4_0: return 0.088;
      case DType::q4_1: return 0.080;
      case DType::q5_0: return 0.044;
      case DType::q5_1: return 0.039;
      case DType::q4_k: return 0.0712;
      case DType::q5_k: return 0.0360;
      case DType::q6_k: return 0.0180;
      case DType::iq4_nl: return 0.0750;
      case DType::iq4_xs: return 0.0757;
      case DType::mxfp4: return 0.1145;
      case DType::q3_k: return 0.1480;
      case DType::q2_k: return 0.2770;
      default: FAIL("no limit for " << to_string(type)); return 0.0;
    }
  };
  const auto values = normal_values(1 << 16, 0.02f, 3);
  for_each_written([&]<class F>(std::type_identity<F>) {
    INFO(to_string(F::dtype));
    CHECK(relative_rmse(values, round_trip<F>(values)) <= limit(F::dtype));
  });
}

TEST_CASE("the search of the K-quants beats plain rounding") {
  const auto values = normal_values(1 << 16, 0.02f, 4);
  const auto check = [&]<class F>(std::type_identity<F>, double share) {
    INFO(to_string(F::dtype));
    const double plain = relative_rmse(values, plain_k_quant(F::dtype, values));
    CHECK(relative_rmse(values, round_trip<F>(values)) < share * plain);
  };
  check(std::type_identity<formats::Q4_K>{}, 0.93);
  check(std::type_identity<formats::Q5_K>{}, 0.93);
  check(std::type_identity<formats::Q6_K>{}, 0.97);
}

TEST_CASE("no value is further off than its block's step") {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    const auto values = normal_values(32, std::ldexp(1.0f, static_cast<int>(random() % 20) - 10), random());
    double low = values[0], high = values[0], size = 0;
    for (const float value : values) {
      low = std::fmin(low, value);
      high = std::fmax(high, value);
      size = std::fmax(size, std::fabs(value));
    }
    // A step, and what rounding scale and minimum to 11 bits adds.
    const auto check = [&](const std::vector<float>& decoded, double step) {
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(std::fabs(static_cast<double>(values[i]) - decoded[i]) <= step * 1.001 + 2 * size * 0x1p-11 + 0x1p-20);
    };
    check(round_trip<formats::Q8_0>(values), size / 127 / 2);
    check(round_trip<formats::Q4_0>(values), size / 8);  // the extreme's opposite is beyond the grid: a whole step
    check(round_trip<formats::Q5_0>(values), size / 16);
    check(round_trip<formats::Q4_1>(values), (high - low) / 15 / 2);
    check(round_trip<formats::Q5_1>(values), (high - low) / 31 / 2);
  }
}

TEST_CASE("encoding what was decoded changes nothing") {
  const auto values = normal_values(1 << 14, 0.3f, 6);
  const auto check = [&]<class F>(std::type_identity<F>) {
    INFO(to_string(F::dtype));
    const auto once = round_trip<F>(values);
    CHECK(round_trip<F>(once) == once);
  };
  check(std::type_identity<formats::F32>{});
  check(std::type_identity<formats::F16>{});
  check(std::type_identity<formats::BF16>{});
  check(std::type_identity<formats::Q8_0>{});
  check(std::type_identity<formats::Q4_0>{});
  check(std::type_identity<formats::Q5_0>{});
}

TEST_CASE("zeros stay zeros and a constant stays near") {
  for_each_written([&]<class F>(std::type_identity<F>) {
    INFO(to_string(F::dtype));
    CHECK(round_trip<F>(std::vector<float>(256, 0.0f)) == std::vector<float>(256, 0.0f));
    // MXFP4's scales are powers of two, and what is from 12 to 16 times one becomes 12; a scale of IQ4_XS below 2^-20 is a denormal half, and six bits refine it.
    const double limit = F::dtype == DType::mxfp4 ? 0.25 : F::dtype == DType::iq4_xs ? 0.03 : 0.01;
    for (const float constant : {0.75f, -0.75f, 1e-3f, -300.0f})
      CHECK(relative_rmse(std::vector<float>(256, constant), round_trip<F>(std::vector<float>(256, constant))) < limit);
  });
}

TEST_CASE("hostile values give finite blocks, and NaN counts as zero") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMax = std::numeric_limits<float>::max(), kTiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> pool = {0.0f,  -0.0f, 1.0f,  -1.0f,   kInfinity, -kInfinity, kNan,   -kNan,  kMax,
                                   -kMax, kTiny, -kTiny, 1e-39f, 65504.0f,  1e30f,      -1e30f, 1e-30f, 3e8f};
  std::mt19937 random(23);
  for_each_written([&]<class F>(std::type_identity<F>) {
    if (F::block_values == 1) return;  // these keep infinities and NaN
    INFO(to_string(F::dtype));
    std::size_t not_finite = 0, nan_matters = 0;
    for (int round = 0; round < 3000; ++round) {
      const std::size_t kinds = 1 + random() % pool.size();
      const std::size_t first = random() % pool.size();
      std::vector<float> values(F::block_values);
      for (auto& value : values) value = pool[(first + random() % kinds) % pool.size()];
      std::vector<std::byte> block(F::block_bytes), without(F::block_bytes);
      std::vector<float> decoded(F::block_values);
      F::encode(values.data(), block.data());
      F::decode(block.data(), decoded.data());
      for (const float value : decoded) not_finite += !(value - value == 0);
      for (auto& value : values) value = value == value ? value : 0.0f;
      F::encode(values.data(), without.data());
      nan_matters += block != without;
    }
    CHECK(not_finite == 0);
    CHECK(nan_matters == 0);
  });
}

TEST_CASE("large values saturate instead of losing the block") {
  for_each_written([&]<class F>(std::type_identity<F>) {
    if (F::block_values == 1) return;
    INFO(to_string(F::dtype));
    std::vector<float> values(256, 1.0f);
    values[3] = std::numeric_limits<float>::infinity();
    CHECK(round_trip<F>(values)[3] > 60000.0f);
  });
}

TEST_CASE("rows that do not fit are errors") {
  std::vector<float> values(32);
  std::vector<std::byte> blocks(34);
  CHECK(formats::encode_row(DType::q8_0, values, blocks));
  CHECK(formats::decode_row(DType::q8_0, blocks, values));
  CHECK(formats::encode_row(DType::q4_0, values, blocks).error().code() == ErrorCode::invalid_argument);
  const auto short_row = std::span(values).first(31);
  CHECK(formats::encode_row(DType::q8_0, short_row, blocks).error().code() == ErrorCode::invalid_argument);
  CHECK(formats::decode_row(DType::q4_k, blocks, values).error().code() == ErrorCode::invalid_argument);
  CHECK(formats::encode_row(DType::int8, values, blocks).error().code() == ErrorCode::unsupported);
  CHECK(formats::decode_row(static_cast<DType>(9), blocks, values).error().code() == ErrorCode::unsupported);
}

}  // namespace test_formats_encode
