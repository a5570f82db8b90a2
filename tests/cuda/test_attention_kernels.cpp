// Attention on a device: close to a softmax in double precision, and of one query always the same bits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <emulator/launch.hpp>

#include "catch.hpp"
#include "cuda/attention/attention_plan.hpp"
#include "cuda/kernels/attention/votes.hpp"
#include "paged_kv.hpp"

namespace test_attention_kernels {

using namespace tessera;        // NOLINT
using namespace tessera::cuda;  // NOLINT
using tessera::test::kernel_suffix;
using tessera::test::kDeviceKvTypes;
using tessera::test::PagedKv;
using tessera::test::random_floats;

namespace {

struct Shape {
  std::uint32_t key_dim, value_dim, kv_heads, group, page_tokens;
  std::uint64_t window;
  std::uint32_t globals = 0, ahead = 0;
  float softcap = 0.0f;
  bool has_sinks = false;
  kv::Values values = kv::Values::beside_keys;
};

struct Row {
  std::uint32_t sequence;
  std::uint64_t position;
};

class Rig {
 public:
  Rig(DType type, const Shape& shape, const std::vector<std::uint64_t>& lengths)
      : shape_(shape), lengths_(lengths), sinks_(random_floats(std::size_t{shape.kv_heads} * shape.group, 77, 2.0f)),
        kv_(layout_of(type, shape), lengths) {
    for (std::uint32_t sequence = 0; sequence < lengths.size(); ++sequence) {
      for (std::uint64_t p = 0; p < lengths[sequence]; ++p) write(sequence, p);
    }
  }

  // A token's keys and values: of a number that is theirs alone, or all NaN.
  void write(std::uint32_t sequence, std::uint64_t position) {
    for (std::uint32_t head = 0; head < shape_.kv_heads; ++head) {
      const auto seed = static_cast<std::uint32_t>((sequence * 100003 + position) * 17 + head);
      kv::encode(kv_.view(sequence), {1, kv::KeyOrValue::key, head}, position, random_floats(shape_.key_dim, seed).data());
      if (shape_.values == kv::Values::in_keys) continue;
      kv::encode(kv_.view(sequence), {1, kv::KeyOrValue::value, head}, position,
                 random_floats(shape_.value_dim, ~seed).data());
    }
  }
  void spoil(std::uint32_t sequence, std::uint64_t position) {
    const std::vector<float> nan(std::max(shape_.key_dim, shape_.value_dim), std::numeric_limits<float>::quiet_NaN());
    for (std::uint32_t head = 0; head < shape_.kv_heads; ++head) {
      kv::encode(kv_.view(sequence), {1, kv::KeyOrValue::key, head}, position, nan.data());
      kv::encode(kv_.view(sequence), {1, kv::KeyOrValue::value, head}, position, nan.data());
    }
  }
  PagedKv& kv() { return kv_; }

  // The queries of a row: its own, wherever it stands.
  [[nodiscard]] std::vector<float> queries(const Row& row) const {
    const auto seed = static_cast<std::uint32_t>(row.sequence * 7001 + row.position + 5);
    return random_floats(heads() * shape_.key_dim, seed);
  }
  [[nodiscard]] std::size_t out_columns() const { return heads() * shape_.value_dim; }
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.key_dim)); }

  // [rows, heads, value_dim]
  [[nodiscard]] std::vector<float> attend(const std::vector<Row>& rows, const AttentionLimits& limits) const {
    std::vector<float> q;
    for (const Row& row : rows) {
      const auto own = queries(row);
      q.insert(q.end(), own.begin(), own.end());
    }
    return attend(rows, q, limits);
  }
  // With queries `q` [rows, heads, key_dim].
  [[nodiscard]] std::vector<float> attend(const std::vector<Row>& rows, const std::vector<float>& q, const AttentionLimits& limits) const {
    std::vector<std::uint32_t> sequences;
    std::vector<std::uint64_t> positions;
    std::vector<std::uint64_t> ends;
    for (const Row& row : rows) {
      sequences.push_back(row.sequence);
      positions.push_back(row.position);
      ends.push_back(lengths_[row.sequence]);
    }
    AttentionPlan plan;
    const AttentionHeads heads_of_layer{shape_.kv_heads, shape_.group, shape_.value_dim, shape_.window, shape_.globals, shape_.ahead};
    plan_attention({sequences, positions, ends}, heads_of_layer, limits, plan);

    const KvLayer layer = kv_layer(kv_.layout(), 1);
    KvTables tables = kv_.tables(sequences, positions);
    tables.row_end = ends.data();
    const float* sinks = shape_.has_sinks ? sinks_.data() : nullptr;
    const std::uint32_t head_size = head_class(shape_.key_dim, shape_.value_dim);
    std::vector<float> out(rows.size() * out_columns(), std::numeric_limits<float>::quiet_NaN());
    for (const AttentionLaunch& launch : plan.launches) {
      if (launch.tiles.empty()) continue;
      std::vector<float> partials(launch.partial_floats, std::numeric_limits<float>::quiet_NaN());
      const auto tiles = static_cast<unsigned>(launch.tiles.size());
      const AttentionArgs args{layer, tables, launch.tiles.data(), q.data(), out.data(), partials.data(),
                               shape_.window, shape_.group, scale(), sinks, shape_.softcap, shape_.globals, shape_.ahead};
      const std::string kernel = std::string("attention_").append(kernel_suffix(layer.dtype)).append("_d")
          .append(std::to_string(head_size)).append("_q").append(std::to_string(launch.query_class));
      emulator::launch(kernel.c_str(), {tiles, shape_.kv_heads, launch.splits}, kAttentionThreads,
                       attention_shared_bytes(head_size, launch.query_class), args);
      if (launch.splits == 1) continue;
      const AttentionMergeArgs merge{tables, launch.tiles.data(), out.data(), partials.data(),
                                     shape_.window, shape_.group, shape_.kv_heads, shape_.value_dim,
                                     kv::rotates(layer.dtype, kv::KeyOrValue::value) ? 1u : 0u, sinks, shape_.ahead};
      emulator::launch("attention_merge", {tiles, shape_.kv_heads, launch.query_class}, kAttentionThreads, 0, merge);
    }
    return out;
  }

  // Votes of rows for keys [rows, stride], in units of a thousandth.
  [[nodiscard]] std::vector<std::uint64_t> votes(const std::vector<Row>& rows, std::uint32_t stride) const {
    std::vector<std::uint32_t> sequences, voters;
    std::vector<std::uint64_t> positions;
    std::vector<float> q;
    for (const Row& row : rows) {
      voters.push_back(static_cast<std::uint32_t>(voters.size()));
      sequences.push_back(row.sequence);
      positions.push_back(row.position);
      const auto own = queries(row);
      q.insert(q.end(), own.begin(), own.end());
    }
    const auto n_heads = static_cast<std::uint32_t>(heads());
    std::vector<float> scores(rows.size() * n_heads * stride);
    std::vector<std::uint64_t> sums(rows.size() * stride);
    const KvLayer layer = kv_layer(kv_.layout(), 1);
    emulator::launch((std::string("count_votes_") + kernel_suffix(layer.dtype)).c_str(), {static_cast<unsigned>(rows.size()), n_heads},
                     kVoteThreads, vote_shared_bytes(layer.key_dim),
                     VoteArgs{layer, kv_.tables(sequences, positions), voters.data(), q.data(), shape_.has_sinks ? sinks_.data() : nullptr,
                              scores.data(), sums.data(), shape_.window, shape_.globals, n_heads, shape_.group, stride, scale(),
                              shape_.softcap, 1000.0f, 0});
    return sums;
  }
  // The same of one row in double precision.
  [[nodiscard]] std::vector<double> expected_votes(const Row& row) const {
    std::vector<double> votes(row.position + 1);
    (void)expected(row, &votes);
    return votes;
  }

  // One row of it in double precision. Adds the row's votes to `votes` [position + 1], in thousandths.
  [[nodiscard]] std::vector<double> expected(const Row& row, std::vector<double>* votes = nullptr) const {
    const auto q = queries(row);
    const std::uint64_t own = row.position + 1;
    const std::uint64_t begin = shape_.window != 0 && own > shape_.window ? own - shape_.window : 0;
    const std::uint64_t end = shape_.ahead == 0 ? own : std::min(own + shape_.ahead, lengths_[row.sequence]);
    std::vector<std::uint64_t> seen;
    for (std::uint64_t p = 0; p < end; ++p) {
      if (p < shape_.globals || p >= begin) seen.push_back(p);
    }
    std::vector<double> out;
    for (std::size_t head = 0; head < heads(); ++head) {
      const std::size_t kv_head = head / shape_.group;
      std::vector<double> scores;
      std::vector<float> key(shape_.key_dim), value(shape_.value_dim);
      for (const std::uint64_t p : seen) {
        kv::decode(kv_.view(row.sequence), {1, kv::KeyOrValue::key, kv_head}, p, key.data());
        double score = 0;
        for (std::size_t d = 0; d < key.size(); ++d) score += double{q[head * key.size() + d]} * key[d];
        score *= scale();
        scores.push_back(shape_.softcap != 0.0f ? shape_.softcap * std::tanh(score / shape_.softcap) : score);
      }
      double maximum = *std::max_element(scores.begin(), scores.end());
      if (shape_.has_sinks) maximum = std::max<double>(maximum, sinks_[head]);
      std::vector<double> sum(shape_.value_dim);
      double weights = shape_.has_sinks ? std::exp(sinks_[head] - maximum) : 0.0;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        if (shape_.values == kv::Values::in_keys) {
          kv::decode(kv_.view(row.sequence), {1, kv::KeyOrValue::key, kv_head}, seen[i], key.data());
          std::copy(key.end() - static_cast<std::ptrdiff_t>(value.size()), key.end(), value.begin());
        } else {
          kv::decode(kv_.view(row.sequence), {1, kv::KeyOrValue::value, kv_head}, seen[i], value.data());
        }
        const double weight = std::exp(scores[i] - maximum);
        weights += weight;
        for (std::size_t d = 0; d < value.size(); ++d) sum[d] += weight * value[d];
      }
      for (std::size_t i = 0; votes != nullptr && i < seen.size(); ++i) {
        (*votes)[seen[i]] += std::pow(std::exp(scores[i] - maximum) / weights, 2.0) * 1000.0;
      }
      for (const double x : sum) out.push_back(x / weights);
    }
    return out;
  }

 private:
  static KvLayout layout_of(DType type, const Shape& shape) {
    const KvLayerShape shapes[] = {{1, 8, 24}, {shape.kv_heads, shape.key_dim, shape.value_dim, 0, shape.values}};
    auto layout = make_kv_layout(shapes, type, shape.page_tokens);
    REQUIRE(layout);
    return *layout;
  }
  [[nodiscard]] std::size_t heads() const { return std::size_t{shape_.kv_heads} * shape_.group; }

  Shape shape_;
  std::vector<std::uint64_t> lengths_;
  std::vector<float> sinks_;  // [heads]
  PagedKv kv_;
};

constexpr AttentionLimits kUnsplit{.concurrent_blocks = 1};
AttentionLimits in_splits(std::uint32_t n) {
  return {.concurrent_blocks = 1u << 30, .partial_floats = 1u << 30, .max_splits = n};
}

struct InOrder {
  explicit InOrder(std::uint64_t seed) { emulator::set_order(seed); }
  ~InOrder() { emulator::set_order(0); }
};

std::vector<float> row_of(const std::vector<float>& out, std::size_t row, std::size_t columns) {
  return {out.data() + row * columns, out.data() + (row + 1) * columns};
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Values are of deviation 1 and weights of sum 1: errors are of the scores (a chain of key_dim steps, |score| up to 6,
// which weights take as relative ones) and of sums of weights of one sign. Both grow with the root of their length,
// and 1,000 steps are 30 * 2^-24; codecs add nothing, as the reference reads what they wrote.
constexpr double kTolerance = 4e-6;

void check_close(const Rig& rig, const std::vector<Row>& rows, const std::vector<float>& out) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto expected = rig.expected(rows[i]);
    double worst = 0;
    for (std::size_t c = 0; c < expected.size(); ++c) {
      const double error = std::fabs(out[i * expected.size() + c] - expected[c]);
      if (!(error <= worst)) worst = error;  // NaN is the worst
    }
    CAPTURE(rows[i].sequence, rows[i].position);
    CHECK(worst <= kTolerance);
  }
}

}  // namespace

TEST_CASE("four numbers in, four out: attention over two keys") {
  // The query fits key 0 by ln 3 and key 1 by 0, after the scale of 1/2. So the row takes three quarters of value 0 and one
  // quarter of value 1.
  Rig rig(DType::f32, {4, 4, 1, 1, 16, 0}, {2});
  const float keys[][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}}, values[][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  for (const std::size_t p : {0, 1}) {
    kv::encode(rig.kv().view(0), {1, kv::KeyOrValue::key, 0}, p, keys[p]);
    kv::encode(rig.kv().view(0), {1, kv::KeyOrValue::value, 0}, p, values[p]);
  }
  const auto out = rig.attend({{0, 1}}, {2 * 1.0986123f, 0, 0, 0}, kUnsplit);
  REQUIRE(out.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(out[i] == Approx(2.0 + static_cast<double>(i)).epsilon(1e-5));
}

TEST_CASE("attention is close to a softmax in double precision: dims, groups, pages, windows") {
  const Shape shapes[] = {
      {1, 1, 2, 1, 16, 0},     {16, 16, 1, 2, 32, 20},   {33, 20, 2, 3, 16, 0},  {64, 33, 1, 7, 64, 600},
      {64, 64, 2, 4, 32, 1},   {80, 80, 1, 20, 16, 0},   {128, 128, 1, 8, 32, 0}, {128, 80, 1, 3, 64, 100},
      {192, 128, 1, 2, 16, 0}, {256, 256, 1, 7, 32, 40}, {300, 512, 1, 2, 64, 0}, {512, 257, 1, 20, 16, 0},
  };
  for (const DType type : kDeviceKvTypes) {
    for (const Shape& shape : shapes) {
      const std::uint64_t length = shape.key_dim > 128 ? 150 : 620;
      const Rig rig(type, shape, {length, 17});
      std::vector<Row> rows;
      for (const std::uint64_t p : {0, 14, 15, 16, 17, 62, 63, 64, 65, 127, 149, 510, 511, 512, 513, 619}) {
        if (p < length) rows.push_back({0, p});
      }
      rows.push_back({1, 16});
      CAPTURE(kernel_suffix(type), shape.key_dim, shape.value_dim, shape.group);
      check_close(rig, rows, rig.attend(rows, kUnsplit));
    }
  }
}

TEST_CASE("capped scores, sinks, global tokens, keys ahead, and values that lie in keys") {
  const Shape shapes[] = {
      {.key_dim = 32, .value_dim = 24, .kv_heads = 2, .group = 3, .page_tokens = 16, .window = 0, .softcap = 1.5f},
      {.key_dim = 32, .value_dim = 24, .kv_heads = 2, .group = 3, .page_tokens = 16, .window = 0, .has_sinks = true},
      {.key_dim = 32, .value_dim = 24, .kv_heads = 2, .group = 3, .page_tokens = 32, .window = 20, .globals = 70, .has_sinks = true},
      {.key_dim = 32, .value_dim = 24, .kv_heads = 1, .group = 5, .page_tokens = 64, .window = 33, .globals = 5},
      {.key_dim = 32, .value_dim = 24, .kv_heads = 1, .group = 2, .page_tokens = 16, .window = 20, .ahead = 10},
      {.key_dim = 32, .value_dim = 24, .kv_heads = 2, .group = 1, .page_tokens = 16, .window = 0, .ahead = ~0u, .softcap = 5.0f},
      {.key_dim = 40, .value_dim = 32, .kv_heads = 1, .group = 6, .page_tokens = 16, .window = 0, .values = kv::Values::in_keys},
      {.key_dim = 576, .value_dim = 512, .kv_heads = 1, .group = 4, .page_tokens = 32, .window = 0, .values = kv::Values::in_keys},
  };
  for (const DType type : kDeviceKvTypes) {
    for (const Shape& shape : shapes) {
      const bool in_keys = shape.values == kv::Values::in_keys;
      if (in_keys && type != DType::f32 && type != DType::f16 && type != DType::bf16) continue;
      const std::uint64_t length = shape.key_dim > 128 ? 70 : 640;
      const Rig rig(type, shape, {length});
      std::vector<Row> rows;
      for (const std::uint64_t p : {0, 5, 19, 20, 21, 63, 64, 69, 90, 300, 511, 512, 600, 639}) {
        if (p < length) rows.push_back({0, p});
      }
      CAPTURE(kernel_suffix(type), shape.key_dim, shape.window, shape.globals, shape.ahead, shape.softcap, shape.has_sinks);
      const auto whole = rig.attend(rows, kUnsplit);
      check_close(rig, rows, whole);
      CHECK(same_bits(rig.attend(rows, in_splits(2)), whole));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(same_bits(rig.attend({rows[i]}, in_splits(3)), row_of(whole, i, rig.out_columns())));
      }
    }
  }
}

TEST_CASE("rows vote for the keys that they see, by the squares of their weights") {
  for (const DType type : kDeviceKvTypes) {
    for (const Shape& shape : {Shape{.key_dim = 32, .value_dim = 24, .kv_heads = 2, .group = 3, .page_tokens = 16, .window = 0},
                               Shape{.key_dim = 48, .value_dim = 24, .kv_heads = 1, .group = 2, .page_tokens = 16, .window = 20, .globals = 5,
                                     .softcap = 2.0f, .has_sinks = true}}) {
      const Rig rig(type, shape, {300, 40});
      const std::vector<Row> rows = {{0, 0}, {0, 25}, {1, 39}, {0, 299}};
      const std::uint32_t stride = 300;
      const auto votes = rig.votes(rows, stride);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto expected = rig.expected_votes(rows[r]);
        CAPTURE(kernel_suffix(type), shape.window, rows[r].position);
        double worst = 0;
        for (std::size_t key = 0; key < stride; ++key) {
          const double wanted = key < expected.size() ? expected[key] : 0.0;
          worst = std::max(worst, std::fabs(static_cast<double>(votes[r * stride + key]) - wanted));
        }
        CHECK(worst <= 0.51 * shape.kv_heads * shape.group);  // each head's vote is rounded
      }
      for (const std::uint64_t seed : {1, 7}) {
        const InOrder order(seed);
        CHECK(rig.votes(rows, stride) == votes);
      }
    }
  }
}

TEST_CASE("attention over several segments, in every number of splits the same bits") {
  for (const DType type : kDeviceKvTypes) {
    for (const std::uint64_t window : {std::uint64_t{0}, std::uint64_t{700}}) {
      const Rig rig(type, {32, 16, 2, 3, 32, window}, {1600, 1100, 40});
      const std::vector<Row> rows = {{0, 511}, {0, 512}, {0, 1022}, {0, 1023}, {0, 1024}, {0, 1025}, {0, 1599},
                                     {1, 1098}, {1, 1099}, {2, 39}};
      const auto whole = rig.attend(rows, kUnsplit);
      check_close(rig, rows, whole);
      for (const std::uint32_t splits : {2u, 3u, 4u, 9u}) {
        const InOrder order(splits);
        CAPTURE(kernel_suffix(type), window, splits);
        CHECK(same_bits(rig.attend(rows, in_splits(splits)), whole));
      }
    }
  }
}

TEST_CASE("a row has the same bits alone, in a prompt and in any company") {
  for (const DType type : kDeviceKvTypes) {
    for (const Shape& shape : {Shape{64, 64, 2, 1, 16, 0}, Shape{128, 96, 1, 3, 32, 50}, Shape{33, 20, 1, 7, 64, 0},
                               Shape{160, 256, 1, 2, 32, 33}, Shape{257, 512, 1, 1, 16, 0}}) {
      const std::uint64_t length = shape.key_dim > 128 ? 70 : 140;
      Rig rig(type, shape, {length, length, 20});
      for (std::uint64_t p = 3; p < length; p += 5) rig.spoil(1, p);  // a neighbour of whom most is NaN
      std::vector<Row> prompt, mixed;
      for (std::uint64_t p = 0; p < length; ++p) prompt.push_back({0, p});
      const auto whole = rig.attend(prompt, kUnsplit);
      for (std::uint64_t p = 0; p < length; p += 23) {
        mixed.push_back({2, p % 20});
        mixed.push_back({0, p});
        mixed.push_back({1, p});
      }
      for (const std::uint64_t seed : {0, 1, 9}) {
        const InOrder order(seed);
        const auto out = rig.attend(mixed, kUnsplit);
        for (std::size_t i = 1; i < mixed.size(); i += 3) {
          CAPTURE(kernel_suffix(type), shape.key_dim, shape.group, mixed[i].position, seed);
          const auto expected = row_of(whole, mixed[i].position, rig.out_columns());
          CHECK(same_bits(row_of(out, i, rig.out_columns()), expected));
          CHECK(same_bits(rig.attend({mixed[i]}, in_splits(4)), expected));
        }
      }
    }
  }
}

TEST_CASE("keys that a row does not see do not reach it, whatever they hold") {
  for (const DType type : kDeviceKvTypes) {
    const Shape shape{64, 80, 1, 2, 16, 40};
    Rig rig(type, shape, {200});
    const auto columns = rig.out_columns();
    std::vector<Row> rows;
    for (std::uint64_t p = 90; p < 140; ++p) rows.push_back({0, p});
    const auto before = rig.attend(rows, kUnsplit);
    check_close(rig, rows, before);
    // NaN at position 120: rows 120.. see it; with a window of 40 those from 100 on see no key below 61.
    rig.spoil(0, 120);
    rig.spoil(0, 55);
    for (std::size_t page = 0; page < 3; ++page) rig.kv().give_back(0, page);  // positions below 48: seen by none
    const auto after = rig.attend(rows, kUnsplit);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(kernel_suffix(type), rows[i].position);
      const bool sees = rows[i].position >= 120 || rows[i].position < 55 + 40;
      const auto row = row_of(after, i, columns);
      CHECK(same_bits(row, row_of(before, i, columns)) == !sees);
      const bool all_nan = std::all_of(row.begin(), row.end(), [](float x) { return std::isnan(x); });
      CHECK(all_nan == sees);
    }
  }
}

TEST_CASE("attention's shared memory") {
  for (const std::uint32_t queries : kQueryClasses) {
    CHECK(attention_shared_bytes(64, queries) <= 48 * 1024);
    CHECK(attention_shared_bytes(128, queries) <= 48 * 1024);
    CHECK(attention_shared_bytes(256, queries) <= 99 * 1024);  // compute capability 8.6
    CHECK(attention_shared_bytes(512, queries) <= 99 * 1024);
  }
  CHECK(head_class(1, 64) == 64);
  CHECK(head_class(65, 1) == 128);
  CHECK(head_class(64, 129) == 256);
  CHECK(head_class(512, 512) == 512);
  CHECK(head_class(576, 512) == 576);
  CHECK(head_class(577, 1) == 0);
  CHECK(head_class(576, 513) == 0);
}

}  // namespace test_attention_kernels
