// What a codec keeps of a value, against a model in double that shares nothing with it; how blocks, records and
// conversions agree.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <tessera/extend/kv/records.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "catch.hpp"

#include "kv/block.hpp"
#include "kv/held_types.hpp"
#include "kv/rotated.hpp"

namespace test_kv_codecs {

using namespace tessera;
using namespace tessera::test;


namespace {

// Of which each holds keys and values alike.
constexpr DType kAlike[] = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::fp8, DType::int4};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

// The nearest number with `digits` binary digits and no bit below 2^lowest, ties to even; infinity from 2^limit on.
double rounded(double x, int digits, int lowest, int limit) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  (void)std::frexp(x, &exponent);  // |x| in [2^(exponent - 1), 2^exponent)
  const int unit = std::max(exponent - digits, lowest);
  const double value = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  return std::fabs(value) >= std::ldexp(1.0, limit) ? std::copysign(HUGE_VAL, x) : value;
}

// The values that INT4 keeps of 16 numbers, as docs/reference/numerics.md has it: in float, whose roundings decide between two multipliers.
std::vector<float> kept_of_sixteen(const float* x, float scale) {
  float largest = 0;  // of two that differ in sign alone the negative
  for (int i = 0; i < 16; ++i) largest = std::fabs(x[i]) > std::fabs(largest) || x[i] == -std::fabs(largest) ? x[i] : largest;
  const int below = std::clamp(static_cast<int>(std::fabs(largest) / scale / 8), 1, 14);
  std::vector<float> best;
  float least = 0;
  for (const int size : {below, below + 1}) {
    const auto m = static_cast<float>(largest > 0 ? -size : size);
    std::vector<float> row, squares;
    for (int i = 0; i < 16; ++i) {
      const float exact = x[i] * (1.0f / (scale * m)), n = std::clamp(std::nearbyint(exact), -8.0f, 7.0f);
      const float off = (exact - n) * m;
      squares.push_back(off * off);
      row.push_back(n * m * scale);
    }
    for (std::size_t half = 8; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) squares[i] += squares[i + half];
    }
    const float lost = squares[0];
    if (best.empty() || lost < least) best = row, least = lost;
  }
  return best;
}

// INT8's scale of these numbers, likewise: of four the one that loses least.
float int8_scale(const std::vector<float>& x, const auto& scale_from) {
  float best = 0, least = 0;
  for (const float times : {127.0f, 126.0f, 125.0f, 124.0f}) {
    const float scale = scale_from(times), per_unit = 1.0f / scale;
    std::vector<float> lost(32);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float exact = x[i] * per_unit, off = exact - std::nearbyint(exact);
      lost[i % 32] += off * off;
    }
    for (std::size_t half = 16; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lost[i] += lost[i + half];
    }
    const float all = lost[0] / (times * times);
    if (times == 127 || all < least) best = scale, least = all;
  }
  return best;
}

// What is left of one token's values of one head, of a type that holds keys and values alike.
std::vector<float> kept(DType type, std::vector<float> values) {
  if (is_held_rotated(type)) values = rotated(values, false);
  std::vector<float> out(values.size());
  double largest = 0;
  bool finite = true;
  for (const float x : values) {
    finite = finite && std::isfinite(x);
    largest = std::max(largest, std::fabs(static_cast<double>(x)));
  }
  const auto scale_from = [&](double times) {
    const double scale = std::max(rounded(largest / times, 24, -149, 128), static_cast<double>(kSmallestNormal));
    const double most = rounded(kLargest / times, 24, -149, 128);
    return scale * times > kLargest || scale > most * (1 - 0x1p-23) ? std::nextafter(static_cast<float>(most), 0.0f) : static_cast<float>(scale);
  };
  const double scale = type == DType::int8 ? int8_scale(values, scale_from) : scale_from(type == DType::fp8 ? 1.75 : 120);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    if (type == DType::f32) out[i] = values[i];
    if (type == DType::f16) out[i] = static_cast<float>(rounded(x, 11, -24, 16));
    if (type == DType::bf16) out[i] = static_cast<float>(rounded(x, 8, -133, 128));
    if (type == DType::int8) {
      const double steps = std::nearbyint(rounded(x / scale, 24, -149, 128));
      out[i] = finite ? static_cast<float>(steps * scale) : kNan;
    }
    if (type == DType::fp8) {
      const double held = std::clamp(rounded(rounded(x / scale, 24, -149, 128) * 256, 4, -9, 128), -448.0, 448.0);
      out[i] = finite ? static_cast<float>(held / 256 * scale) : kNan;
    }
  }
  if (type == DType::int4) {
    std::vector<float> padded = values;
    padded.resize((values.size() + 15) / 16 * 16);
    for (std::size_t i = 0; i < values.size(); i += 16) {
      const auto sixteen = finite ? kept_of_sixteen(&padded[i], static_cast<float>(scale)) : std::vector<float>(16, kNan);
      std::copy_n(sixteen.begin(), std::min<std::size_t>(16, values.size() - i), &out[i]);
    }
  }
  return is_held_rotated(type) ? rotated(out, true) : out;
}

bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : a == b; }

// Through a block of 16 tokens, as a key and as a value.
template <class Codec>
std::vector<float> through(const std::vector<float>& values) {
  const std::size_t dim = values.size();
  alignas(64) std::byte block[16 * 64 * sizeof(float)] = {};
  REQUIRE(kv::block_elements<Codec>(kv::KeyOrValue::key, 16, dim) * sizeof(typename Codec::Element) + 16 * sizeof(float) <= sizeof block);
  std::vector<float> key(dim), value(dim);
  kv::Slot<Codec, kv::KeyOrValue::key> as_key(block, 16, dim, 5);
  as_key.encode(values.data());
  as_key.decode(key.data());
  kv::Slot<Codec, kv::KeyOrValue::value> as_value(block, 16, dim, 5);
  as_value.encode(values.data());
  as_value.decode(value.data());
  for (std::size_t i = 0; i < dim; ++i) CHECK(same(key[i], value[i]));
  return key;
}

std::vector<float> through(DType type, const std::vector<float>& values) {
  std::vector<float> out;
  REQUIRE(kv::visit(type, kv::KeyOrValue::key, [&]<class C>(std::type_identity<C>) { out = through<C>(values); }));
  return out;
}

// Rows that each type finds hard in its own way, and then random ones of every magnitude.
std::vector<std::vector<float>> rows() {
  std::vector<std::vector<float>> all = {
      {0, 0, 0, 0},
      {-0.0f, 0, 1, -1},
      {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, 125.5f},  // INT8: a scale of 1, and ties
      {65504, 65519.996f, 65520, -65520, 65535, 1e30f, -1e-8f, 5.9604645e-8f, 2.9802322e-8f, 2.9802326e-8f},  // F16
      {1.00390625f, 1.01171875f, 3.3961776e38f, kLargest, -kLargest, kSmallest, 4.6e-41f, 9.2e-41f},        // BF16
      {kLargest, -kLargest, kLargest / 127, kLargest / 254, 1},
      {kSmallestNormal, -kSmallestNormal, kSmallestNormal / 2, kSmallestNormal * 0.75f, kSmallest},
      {kSmallest, 0, -kSmallest},
      {kSmallestNormal * 127, kSmallestNormal * 126.5f, kSmallestNormal * 0.5f},
      {kInfinity, 1, 2},
      {-kInfinity, 1},
      {1, kNan, 3},
      {kInfinity, -kInfinity, kNan},
  };
  std::mt19937 random(3);
  for (int exponent = -149; exponent <= 127; ++exponent) {
    std::vector<float> row(1 + random() % 60);
    for (float& x : row) {
      x = static_cast<float>(
          std::ldexp(static_cast<double>(random()) / 2147483648.0 - 1, exponent - static_cast<int>(random() % 12)));
    }
    all.push_back(row);
  }
  return all;
}

}  // namespace

TEST_CASE("a codec keeps of a value what the model says", "[kv][codec]") {
  for (const DType type : kAlike) {
    for (const auto& row : rows()) {
      const auto expected = kept(type, row), found = through(type, row);
      for (std::size_t i = 0; i < row.size(); ++i) {
        INFO(to_string(type) << " of " << row[i] << ", number " << i << " of a row of " << row.size());
        CHECK((same(found[i], expected[i])));
      }
    }
  }
}

TEST_CASE("INT8 is within half a step", "[kv][codec]") {
  for (const auto& row : rows()) {
    if (row.size() % kv::kLeastRotated == 0) continue;  // rotated: the step is another basis's
    const float scale = kv::Int8::scale_of(row.data(), row.size());
    if (std::isnan(scale)) continue;
    const auto found = through(DType::int8, row);
    // Exactly half of it where the scale is a power of two; else x / scale and the product are rounded to an f32 too.
    const bool exact = (std::bit_cast<std::uint32_t>(scale) & 0x7fffffu) == 0;
    const double bound = scale * (exact ? 0.5 : 0.5 + 0x1p-16);
    for (std::size_t i = 0; i < row.size(); ++i) {
      INFO(row[i] << " became " << found[i] << ", scale " << scale);
      CHECK(std::fabs(static_cast<double>(row[i]) - found[i]) <= bound);
    }
  }
}

TEST_CASE("INT8 loses no more than with any of its scales, and less than with the first", "[kv][codec]") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  double all = 0, all_of_first = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<float> row(60);  // which are not rotated
    for (float& x : row) x = normal(random);
    const auto lost_with = [&](float scale) {
      double lost = 0;
      for (const float x : row) lost += std::pow(x / scale - std::nearbyint(x / scale), 2) * scale * scale;
      return lost;
    };
    const auto found = through(DType::int8, row);
    double lost = 0;
    for (std::size_t i = 0; i < row.size(); ++i) lost += std::pow(static_cast<double>(found[i]) - row[i], 2);
    const float largest = kv::largest_of(row.data(), row.size());
    for (const float times : {127.0f, 126.0f, 125.0f, 124.0f}) CHECK(lost <= lost_with(largest / times) * 1.001);
    all += lost;
    all_of_first += lost_with(largest / 127);
  }
  CHECK(all < 0.93 * all_of_first);
}

TEST_CASE("FP8's codes: every number of E4M3 is kept, what lies between goes to the nearest, ties to even", "[kv][codec]") {
  using Fp8 = kv::Fp8;
  const float scale = 256.0f;  // numbers as they are
  for (unsigned bits = 0; bits < 256; ++bits) {
    if ((bits & 0x7f) == 0x7f) continue;  // a NaN
    const float x = e4m3_over_256(static_cast<std::uint8_t>(bits)) * 256;
    CHECK(Fp8::decode(Fp8::encode(x, scale), scale) == x);
    CHECK(Fp8::encode(x, scale) == bits);
    if ((bits & 0x7f) >= 0x7e) continue;
    const float next = e4m3_over_256(static_cast<std::uint8_t>(bits + 1)) * 256, middle = (x + next) / 2;
    CHECK(Fp8::encode(middle, scale) == (bits % 2 == 0 ? bits : bits + 1));
    CHECK(Fp8::encode(std::nextafter(middle, x), scale) == bits);
    CHECK(Fp8::encode(std::nextafter(middle, next), scale) == bits + 1);
  }
  CHECK(Fp8::encode(1e9f, scale) == 0x7e);
  CHECK(Fp8::encode(-1e9f, scale) == 0xfe);
}

TEST_CASE("INT4 loses no more than the better of its multipliers, and bytes are what is said", "[kv][codec]") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> row(64);
    for (float& x : row) x = normal(random);
    const auto found = through(DType::int4, row);
    double lost = 0, all = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      lost += std::pow(static_cast<double>(found[i]) - row[i], 2);
      all += std::pow(static_cast<double>(row[i]), 2);
    }
    CHECK(lost < 0.012 * all);  // of Gaussian numbers 0.005 to 0.006 is usual; of the worst 16 it can be twice that
  }
  CHECK(kv::record_bytes(DType::int4, kv::KeyOrValue::key, 64) == 40);
  CHECK(kv::record_bytes(DType::int4, kv::KeyOrValue::value, 80) == 58);
  CHECK(kv::record_bytes(DType::fp8, kv::KeyOrValue::key, 64) == 68);
  CHECK(kv::record_bytes(DType::k8v4, kv::KeyOrValue::key, 64) == 68);
  CHECK(kv::record_bytes(DType::k8v4, kv::KeyOrValue::value, 64) == 40);
  for (const float bad : {kInfinity, -kInfinity, kNan}) {
    for (const DType type : {DType::fp8, DType::int4}) {
      for (const float x : through(type, {1, bad, 3})) CHECK(std::isnan(x));
    }
  }
}

TEST_CASE("INT8's ends: zeros, underflow, saturation, ties, what is not finite", "[kv][codec]") {
  using Int8 = kv::Int8;
  const auto codes = [](std::vector<float> values) {
    const float scale = Int8::scale_of(values.data(), values.size());
    std::vector<int> out;
    for (const float x : values) out.push_back(Int8::encode(x, scale));
    return out;
  };
  using Codes = std::vector<int>;
  CHECK(codes({0, -0.0f, 0}) == Codes{0, 0, 0});
  CHECK(codes({127, 1, -2, 3}) == Codes{127, 1, -2, 3});
  CHECK(codes({125, -1, 2, 3, 60}) == Codes{125, -1, 2, 3, 60});
  CHECK(codes({kLargest, -kLargest})[0] == -codes({kLargest, -kLargest})[1]);
  Codes ties;
  for (const float x : {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f}) ties.push_back(Int8::encode(x, 1));
  CHECK(ties == Codes{0, 2, 2, 0, -2, -2, 126});
  CHECK(codes({kSmallest, -kSmallest}) == Codes{0, 0});
  CHECK(codes({kSmallestNormal, kSmallestNormal / 2, kSmallestNormal * 0.75f}) == Codes{1, 0, 1});
  CHECK(codes({kInfinity, 1}) == Codes{0, 0});
  for (const float bad : {kInfinity, -kInfinity, kNan}) {
    for (const float x : through(DType::int8, {1, bad, 3})) CHECK(std::isnan(x));
  }
  // However the quotient is rounded, the largest becomes what it should: every significand, at three exponents.
  for (const int exponent : {-100, 0, 100}) {
    for (std::uint32_t step = 0; step < 1u << 23; step += 97) {
      const float x = std::ldexp(std::bit_cast<float>(0x3f800000u + step), exponent);
      for (unsigned i = 0; i < Int8::scales; ++i) {
        const float scale = Int8::scale_from(x, i);
        const int largest = 127 - static_cast<int>(i);
        if (Int8::encode(x, scale) != largest || Int8::encode(-x, scale) != -largest) FAIL("the largest, " << x);
      }
    }
  }
  // A stale scale, as no codec makes one: nothing out of range.
  CHECK(Int8::encode(1000, 1) == 0);
}

TEST_CASE("slots, groups of keys, runs of values and records are the same numbers", "[kv][codec]") {
  std::mt19937 random(9);
  for (const DType type : kAlike) {
    kv::visit(type, kv::KeyOrValue::key, [&]<class C>(std::type_identity<C>) {
      for (const std::size_t page_tokens : {16u, 32u, 64u}) {
        for (const std::size_t dim : {1u, 2u, 3u, 8u, 13u, 24u, 33u, 48u}) {
          const std::size_t bytes = kv::block_bytes(type, kv::KeyOrValue::key, page_tokens, dim);
          CHECK(bytes >= kv::block_bytes(type, kv::KeyOrValue::value, page_tokens, dim));
          std::vector<float> keys_block(bytes / 4 + 1), values_block(bytes / 4 + 1), copy(bytes / 4 + 1);
          auto* keys = reinterpret_cast<std::byte*>(keys_block.data());
          auto* values = reinterpret_cast<std::byte*>(values_block.data());
          auto* other = reinterpret_cast<std::byte*>(copy.data());
          std::vector<float> in(page_tokens * dim), one(dim);
          for (float& x : in) x = static_cast<float>(random()) / 1e9f - 2;
          std::memset(keys, 0xff, bytes);  // what nobody wrote may be anything
          std::memset(values, 0xff, bytes);
          for (std::size_t slot = 0; slot < page_tokens; ++slot) {
            kv::Slot<C, kv::KeyOrValue::key>(keys, page_tokens, dim, slot).encode(&in[slot * dim]);
            kv::Slot<C, kv::KeyOrValue::value>(values, page_tokens, dim, slot).encode(&in[slot * dim]);
          }
          if (!kv::kInRuns<C> && dim % C::pair != 0) {  // an odd dimension's other half is zero in every token
            const auto* last = reinterpret_cast<const typename C::Element*>(keys) + dim / C::pair * page_tokens * C::pair;
            for (std::size_t slot = 0; slot < page_tokens; ++slot) CHECK(last[slot * C::pair + 1] == 0);
          }
          std::vector<float> group(dim * 16), run(dim * 7);
          kv::decode_keys<C, 16>(keys, page_tokens, dim, page_tokens - 16, group.data(), 16);
          kv::decode_values<C>(values, page_tokens, dim, 8, 7, run.data());
          for (std::size_t j = 0; j < 16; ++j) {
            kv::Slot<C, kv::KeyOrValue::key>(keys, page_tokens, dim, page_tokens - 16 + j).decode(one.data());
            for (std::size_t d = 0; d < dim; ++d) CHECK(group[d * 16 + j] == one[d]);
          }
          for (std::size_t j = 0; j < 7; ++j) {
            kv::Slot<C, kv::KeyOrValue::value>(values, page_tokens, dim, 8 + j).decode(one.data());
            for (std::size_t d = 0; d < dim; ++d) CHECK(run[j * dim + d] == one[d]);
          }
          // A key's record into a slot for values and back: the record knows no layout. At an odd address, too.
          std::vector<std::byte> record(kv::record_bytes(type, kv::KeyOrValue::key, dim) + 1), back(record.size());
          for (std::size_t slot = 0; slot < page_tokens; ++slot) {
            kv::Slot<C, kv::KeyOrValue::key>(keys, page_tokens, dim, slot).read(record.data() + 1);
            const kv::Slot<C, kv::KeyOrValue::value> to(other, page_tokens, dim, page_tokens - 1 - slot);
            to.write(record.data() + 1);
            to.read(back.data() + 1);
            CHECK(std::memcmp(record.data() + 1, back.data() + 1, record.size() - 1) == 0);
            to.decode(one.data());
            std::vector<float> key(dim);
            kv::Slot<C, kv::KeyOrValue::key>(keys, page_tokens, dim, slot).decode(key.data());
            CHECK(one == key);
          }
        }
      }
    });
  }
}

namespace {

const KvLayerShape kShapes[] = {{.kv_heads = 2, .key_dim = 5, .value_dim = 3},
                                {.kv_heads = 1, .key_dim = 4, .value_dim = 8}};
constexpr std::uint64_t kTokens = 70;

template <class Fn>
void for_each_row(const KvCache& cache, Fn&& fn) {
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (std::size_t head = 0; head < kShapes[layer].kv_heads; ++head) {
      for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
        const kv::HeadPart of{.layer = layer, .part = part, .head = head};
        for (std::uint64_t position = 0; position < kTokens; ++position) {
          std::vector<float> row(kv::dim_of(cache.layout(), of));
          fn(of, position, row);
        }
      }
    }
  }
}

KvCache make(DType type, std::uint32_t page_tokens, KvKind kind, const KvPools& pools) {
  auto layout = make_kv_layout(kShapes, type, page_tokens);
  REQUIRE(layout);
  auto cache = kind == KvKind::paged ? KvCache::paged(*std::move(layout), {.capacity = 100}, pools)
                                     : KvCache::contiguous(*std::move(layout), {.capacity = 100}, system_memory());
  REQUIRE(cache);
  return *std::move(cache);
}

// Of either sign and several magnitudes.
float value_at(const kv::HeadPart& of, std::uint64_t position, std::size_t d) {
  const std::uint64_t place = (((position * 2 + of.layer) * 2 + of.head) * 2 + static_cast<unsigned>(of.part)) * 8 + d;
  const auto random = static_cast<std::int32_t>(static_cast<std::uint32_t>((place + 1) * 0x9e3779b97f4a7c15u >> 32));
  return std::ldexp(static_cast<float>(random), static_cast<int>(position % 9) - 35);
}

}  // namespace

TEST_CASE("every kind, type and page size is converted into every other", "[kv][codec]") {
  struct Form {
    DType type;
    std::uint32_t page_tokens;
    KvKind kind;
  };
  std::vector<Form> forms;
  for (const DType type : kKvTypes) {
    for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
      for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) forms.push_back({type, page_tokens, kind});
    }
  }
  auto pools = KvPools::create({.max_slab_pages = 4});
  REQUIRE(pools);
  for (const Form& from_form : forms) {
    KvCache from = make(from_form.type, from_form.page_tokens, from_form.kind, *pools);
    REQUIRE(from.reserve(kTokens));
    for_each_row(from, [&](const kv::HeadPart& of, std::uint64_t position, std::vector<float>& row) {
      for (std::size_t d = 0; d < row.size(); ++d) row[d] = value_at(of, position, d);
      kv::encode(from.view(), of, position, row.data());
    });
    from.commit(kTokens);
    for (const Form& to_form : forms) {
      KvCache to = make(to_form.type, to_form.page_tokens, to_form.kind, *pools);
      REQUIRE(from.convert_to(to));
      CHECK(to.length() == kTokens);
      const bool same_type = from_form.type == to_form.type;
      CHECK(to.edited() == !same_type);
      if (same_type) CHECK(to.checksum(0) == from.checksum(0));
      if (same_type) CHECK(to.checksum(1) == from.checksum(1));
      std::size_t wrong = 0;
      for_each_row(to, [&](const kv::HeadPart& of, std::uint64_t position, std::vector<float>& row) {
        for (std::size_t d = 0; d < row.size(); ++d) row[d] = value_at(of, position, d);
        const DType one = held_as(from_form.type, of.part), other = held_as(to_form.type, of.part);
        auto expected = kept(one, row);
        if (!same_type) expected = kept(other, expected);
        kv::decode(to.view(), of, position, row.data());
        wrong += row == expected ? 0 : 1;
      });
      INFO(to_string(from_form.type) << " " << from_form.page_tokens << " to " << to_string(to_form.type) << " "
                                     << to_form.page_tokens);
      CHECK(wrong == 0);
      CHECK(!from.convert_to(to));  // it is not empty any more
    }
  }
  const KvLayerShape others[] = {{.kv_heads = 2, .key_dim = 5, .value_dim = 3}};
  auto layout = make_kv_layout(others, DType::f32);
  REQUIRE(layout);
  auto other = KvCache::paged(*layout, {.capacity = 100}, *pools);
  REQUIRE(other);
  const auto refused = make(DType::f32, 16, KvKind::paged, *pools).convert_to(*other);
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::invalid_argument);
}

}  // namespace test_kv_codecs
