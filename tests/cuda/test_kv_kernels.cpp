// What writes the KV pages on a device: the same bytes as the CPU's codecs, in whatever order threads and blocks run.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <emulator/launch.hpp>

#include "backend/rope_table.hpp"
#include "catch.hpp"
#include "cpu/attention/move_tokens.hpp"
#include "cpu/attention/rope.hpp"
#include "cuda/kernels/heads.hpp"
#include "cuda/kernels/move_tokens.hpp"
#include "kv/block.hpp"
#include "paged_kv.hpp"

namespace test_kv_kernels {

using namespace tessera;        // NOLINT
using namespace tessera::cuda;  // NOLINT
using tessera::test::kernel_suffix;
using tessera::test::kDeviceKvTypes;
using tessera::test::PagedKv;
using tessera::test::random_floats;

namespace {

struct Dims {
  std::uint32_t key, value;
};
constexpr Dims kDims[] = {{1, 1}, {16, 16}, {33, 20}, {64, 33}, {80, 128}};
constexpr std::uint32_t kHeads = 3;  // KV heads

// The second of two layers is the one that is written.
KvLayout layout_of(DType type, Dims dims, std::uint32_t page_tokens) {
  const KvLayerShape shapes[] = {{1, 8, 24}, {kHeads, dims.key, dims.value}};
  auto layout = make_kv_layout(shapes, type, page_tokens);
  REQUIRE(layout);
  return *layout;
}

std::string named(const char* kernel, DType type) {
  return std::string(kernel).append("_").append(kernel_suffix(type));
}

// Rows of two sequences: runs that cross a page and start in the middle of a pair, and a lone one.
struct Rows {
  std::vector<std::uint32_t> sequences;
  std::vector<std::uint64_t> positions;
};
Rows some_rows() {
  Rows rows;
  for (std::uint64_t p = 13; p < 36; ++p) rows.sequences.push_back(1), rows.positions.push_back(p);
  rows.sequences.push_back(0), rows.positions.push_back(70);
  for (std::uint64_t p = 0; p < 3; ++p) rows.sequences.push_back(2), rows.positions.push_back(p);
  return rows;
}
const std::vector<std::uint64_t> kRoom = {71, 40, 3};

struct InOrder {
  explicit InOrder(std::uint64_t seed) { emulator::set_order(seed); }
  ~InOrder() { emulator::set_order(0); }
};

void append_on_cpu(PagedKv& kv, const Rows& rows, const std::vector<float>& k, const std::vector<float>& v, Dims dims) {
  for (std::size_t row = 0; row < rows.sequences.size(); ++row) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const KvView view = kv.view(rows.sequences[row]);
      kv::encode(view, {1, kv::KeyOrValue::key, head}, rows.positions[row], k.data() + (row * kHeads + head) * dims.key);
      kv::encode(view, {1, kv::KeyOrValue::value, head}, rows.positions[row], v.data() + (row * kHeads + head) * dims.value);
    }
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// [rows][pairs][cosine, sine]
std::vector<float> turns_of(const Rows& rows, std::uint32_t pairs) {
  std::vector<double> frequencies;
  for (std::uint32_t i = 0; i < pairs; ++i) frequencies.push_back(std::pow(10000.0, -1.0 * i / pairs));
  std::vector<float> table(rows.positions.size() * 2 * pairs);
  for (std::size_t row = 0; row < rows.positions.size(); ++row) {
    backend::rope_table({.frequencies = frequencies}, rows.positions[row], table.data() + row * 2 * pairs);
  }
  return table;
}

template <class Codec, kv::KeyOrValue part>
void check_addresses(DType type, Dims dims, std::uint32_t page_tokens) {
  const KvLayout layout = layout_of(type, dims, page_tokens);
  const KvLayer layer = kv_layer(layout, 1);
  PagedKv kv(layout, {2 * page_tokens});
  const std::uint32_t dim = part == kv::KeyOrValue::key ? dims.key : dims.value;
  CHECK(kv_dim(layer, part) == dim);
  for (std::uint64_t position = 0; position < 2 * page_tokens; ++position) {
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      const auto values = random_floats(dim, static_cast<std::uint32_t>(position * kHeads + head));
      kv::encode(kv.view(0), {1, part, head}, position, values.data());
      auto held = values;
      if constexpr (Codec::rotates) kv::rotate(held.data(), dim, kv::Turn::in);
      const std::uint64_t block = kv_block(layer, part, kv.pages(0)[kv_page_of(layer, position)], head);
      const std::uint32_t slot = kv_slot_of(layer, position);
      float scale = 1.0f;
      if constexpr (Codec::has_scale) {
        scale = reinterpret_cast<const float*>(block + kv_scales<Codec, part>(layer))[slot];
        CHECK(scale == Codec::scale_of(held.data(), dim));
      }
      for (std::uint32_t d = 0; d < dim; ++d) {
        const auto* elements = reinterpret_cast<const typename Codec::Element*>(block);
        REQUIRE(elements[kv_element<Codec, part>(layer, slot, d)] == Codec::encode(held[d], scale));
      }
    }
  }
}

}  // namespace

TEST_CASE("four numbers in, four out: a token's key and value, written and read back") {
  const std::uint32_t page_tokens = 16;
  const Rows rows{{0}, {17}};  // the second token of the second page
  for (const DType type : kDeviceKvTypes) {
    PagedKv kv(layout_of(type, {4, 4}, page_tokens), {18});
    // [heads, dim]: types of 16 bits and more hold these numbers exactly
    const std::vector<float> k{1, 2, -4, 7, 0, 0, 0, 0, 7, 7, 7, 7}, v{-1, 2, 4, -7, 0, 0, 0, 0, 1, 1, 1, 1};
    const AppendKvArgs args{kv_layer(kv.layout(), 1), kv.tables(rows.sequences, rows.positions), k.data(), v.data(), 1};
    emulator::launch(named("append_kv", type).c_str(), {head_blocks(2 * kHeads)}, kHeadThreads, 0, args);
    CAPTURE(kernel_suffix(type));
    for (std::size_t head = 0; head < kHeads; ++head) {
      float key[4], value[4];
      kv::decode(kv.view(0), {1, kv::KeyOrValue::key, head}, 17, key);
      kv::decode(kv.view(0), {1, kv::KeyOrValue::value, head}, 17, value);
      const float of_keys = type == DType::int8 || type == DType::k8v4 ? 0.04f : type == DType::fp8 ? 0.3f : type == DType::int4 ? 0.5f : 0.0f;
      const float of_values = type == DType::k8v4 ? 0.5f : of_keys;
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(std::abs(key[i] - k[4 * head + i]) <= of_keys);
        CHECK(std::abs(value[i] - v[4 * head + i]) <= of_values);
      }
    }
  }
}

TEST_CASE("device pages have the addresses of kv::Slot and KvView") {
  for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
    for (const Dims dims : kDims) {
      for (const DType type : kDeviceKvTypes) {
        kv::visit(type, kv::KeyOrValue::key, [&]<class C>(std::type_identity<C>) {
          if constexpr (!kv::kInRuns<C>) {
            check_addresses<C, kv::KeyOrValue::key>(type, dims, page_tokens);
            if (type != DType::k8v4) check_addresses<C, kv::KeyOrValue::value>(type, dims, page_tokens);
          }
        });
      }
    }
  }
}

TEST_CASE("appended keys and values have the CPU's bytes") {
  const Rows rows = some_rows();
  const std::size_t n = rows.sequences.size();
  for (const DType type : kDeviceKvTypes) {
    for (const Dims dims : kDims) {
      const std::uint32_t page_tokens = dims.key == 64 ? 64 : dims.key == 33 ? 32 : 16;
      const KvLayout layout = layout_of(type, dims, page_tokens);
      auto k = random_floats(n * kHeads * dims.key, 1), v = random_floats(n * kHeads * dims.value, 2, 1e3f);
      // Heads of zeros, of numbers near the ends of the range, and with something that is no number.
      for (std::size_t d = 0; d < dims.key; ++d) k[d] = 0.0f, k[dims.key + d] *= 1e-40f, k[2 * dims.key + d] *= 1e37f;
      k[3 * dims.key] = std::numeric_limits<float>::infinity();
      v[3 * dims.value] = -std::numeric_limits<float>::infinity();
      v[4 * dims.value] = std::bit_cast<float>(0xffc12345u);
      v[5 * dims.value] = std::numeric_limits<float>::max();
      PagedKv expected(layout, kRoom);
      append_on_cpu(expected, rows, k, v, dims);
      for (const std::uint64_t seed : {0, 1, 5}) {
        const InOrder order(seed);
        PagedKv kv(layout, kRoom);
        const AppendKvArgs args{kv_layer(layout, 1), kv.tables(rows.sequences, rows.positions), k.data(), v.data(),
                                static_cast<std::uint32_t>(n)};
        emulator::launch(named("append_kv", type).c_str(), {head_blocks(n * 2 * kHeads)}, kHeadThreads, 0, args);
        CAPTURE(kernel_suffix(type), dims.key, dims.value, seed);
        CHECK(kv.bytes() == expected.bytes());
      }
    }
  }
}

TEST_CASE("rope on a device has the CPU's bits") {
  const Rows rows = some_rows();
  const std::size_t n = rows.positions.size();
  const std::uint32_t heads = 5, dim = 80;
  for (const std::uint32_t pairs : {1u, 20u, 40u}) {
    for (const RopePairs kind : {RopePairs::halves, RopePairs::interleaved}) {
      const auto table = turns_of(rows, pairs);
      auto x = random_floats(n * heads * dim, 3), expected = x;
      for (std::size_t i = 0; i < n * heads; ++i) {
        const float* turn = table.data() + i / heads * 2 * pairs;
        cpu::rope(turn, pairs, kind == RopePairs::interleaved, expected.data() + i * dim);
      }
      const RopeArgs args{x.data(), {table.data(), pairs, kind}, static_cast<std::uint32_t>(n), heads, dim};
      emulator::launch("rope", {head_blocks(n * heads)}, kHeadThreads, 0, args);
      CHECK(same_bits(x, expected));
    }
  }
}

TEST_CASE("head norms are close to those in double precision") {
  for (const std::uint32_t dim : {1u, 33u, 64u, 300u}) {
    const std::uint32_t rows = 3, heads = 7;
    auto x = random_floats(rows * heads * dim, 4);
    const auto before = x, weight = random_floats(dim, 5);
    const HeadNormArgs args{x.data(), weight.data(), 1e-5f, rows, heads, dim};
    emulator::launch("head_norm", {head_blocks(rows * heads)}, kHeadThreads, 0, args);
    for (std::size_t head = 0; head < rows * heads; ++head) {
      double sum = 0;
      for (std::size_t d = 0; d < dim; ++d) sum += double{before[head * dim + d]} * before[head * dim + d];
      const double scale = 1.0 / std::sqrt(sum / dim + 1e-5f);
      for (std::size_t d = 0; d < dim; ++d) {
        const double expected = before[head * dim + d] * scale * weight[d];
        REQUIRE(std::fabs(x[head * dim + d] - expected) <= 1e-6 * std::fabs(expected));  // about ten roundings
      }
    }
  }
}

TEST_CASE("norms, rope and append in one kernel have the plain kernels' bits") {
  const Rows rows = some_rows();
  const auto n = static_cast<std::uint32_t>(rows.positions.size());
  const std::uint32_t heads = 6;
  const float eps = 1e-6f;
  for (const DType type : kDeviceKvTypes) {
    for (const Dims dims : {Dims{64, 33}, Dims{33, 20}}) {
      for (const bool normed : {false, true}) {
        const KvLayout layout = layout_of(type, dims, 32);
        const std::uint32_t pairs = normed ? dims.key / 2 : dims.key / 4;
        const auto table = turns_of(rows, pairs);
        const RopeTurns turns{table.data(), pairs, normed ? RopePairs::halves : RopePairs::interleaved};
        const auto q_norm = random_floats(dims.key, 6), k_norm = random_floats(dims.key, 7);
        const auto q = random_floats(n * heads * dims.key, 8), k = random_floats(n * kHeads * dims.key, 9);
        const auto v = random_floats(n * kHeads * dims.value, 10);

        PagedKv plain(layout, kRoom), fused(layout, kRoom);
        auto plain_q = q, plain_k = k, fused_q = q, fused_k = k;
        if (normed) {
          emulator::launch("head_norm", {head_blocks(n * heads)}, kHeadThreads, 0,
                           HeadNormArgs{plain_q.data(), q_norm.data(), eps, n, heads, dims.key});
          emulator::launch("head_norm", {head_blocks(n * kHeads)}, kHeadThreads, 0,
                           HeadNormArgs{plain_k.data(), k_norm.data(), eps, n, kHeads, dims.key});
        }
        emulator::launch("rope", {head_blocks(n * heads)}, kHeadThreads, 0,
                         RopeArgs{plain_q.data(), turns, n, heads, dims.key});
        emulator::launch("rope", {head_blocks(n * kHeads)}, kHeadThreads, 0,
                         RopeArgs{plain_k.data(), turns, n, kHeads, dims.key});
        emulator::launch(named("append_kv", type).c_str(), {head_blocks(n * 2 * kHeads)}, kHeadThreads, 0,
                         AppendKvArgs{kv_layer(layout, 1), plain.tables(rows.sequences, rows.positions), plain_k.data(),
                                      v.data(), n});

        const InOrder order(normed ? 3 : 1);
        const RopeAppendArgs args{.layer = kv_layer(layout, 1),
                                  .tables = fused.tables(rows.sequences, rows.positions),
                                  .q = fused_q.data(),
                                  .k = fused_k.data(),
                                  .v = v.data(),
                                  .q_norm = normed ? q_norm.data() : nullptr,
                                  .k_norm = normed ? k_norm.data() : nullptr,
                                  .turns = turns,
                                  .eps = eps,
                                  .rows = n,
                                  .heads = heads};
        const std::uint32_t blocks = head_blocks(n * (heads + 2 * kHeads));
        emulator::launch(named("rope_append", type).c_str(), {blocks}, kHeadThreads, 0, args);
        CAPTURE(kernel_suffix(type), dims.key, normed);
        CHECK(same_bits(fused_q, plain_q));
        CHECK(same_bits(fused_k, plain_k));
        CHECK(fused.bytes() == plain.bytes());
      }
    }
  }
}

TEST_CASE("tokens that move have the CPU's bytes, also where they overlap") {
  const std::uint64_t length = 100;
  const backend::KvMove moves[] = {{40, 3, 60}, {10, 9, 90}, {1, 0, 1}, {64, 16, 20}, {8, 0, 92}};
  for (const DType type : kDeviceKvTypes) {
    for (const Dims dims : {Dims{64, 33}, Dims{33, 80}}) {
      const KvLayout layout = layout_of(type, dims, dims.key == 64 ? 16 : 32);
      PagedKv kv(layout, {length});
      for (std::uint64_t p = 0; p < length; ++p) {
        for (std::size_t head = 0; head < kHeads; ++head) {
          const auto seed = static_cast<std::uint32_t>(p * kHeads + head);
          kv::encode(kv.view(0), {1, kv::KeyOrValue::key, head}, p, random_floats(dims.key, seed).data());
          kv::encode(kv.view(0), {1, kv::KeyOrValue::value, head}, p, random_floats(dims.value, seed + 1).data());
        }
      }
      const auto before = kv.bytes();
      for (const backend::KvMove& move : moves) {
        for (const std::uint32_t pairs : {0u, dims.key / 2}) {
          const RopePairs kind = move.count % 2 == 0 ? RopePairs::interleaved : RopePairs::halves;
          std::vector<double> frequencies;
          for (std::uint32_t i = 0; i < pairs; ++i) frequencies.push_back(std::pow(10000.0, -1.0 * i / pairs));
          const backend::RopeTable rope{kind, frequencies};
          std::vector<float> turn(2 * pairs);
          backend::turn_back(rope, move.from - move.to, turn);

          kv.restore(before);
          const std::uint64_t skipped = pairs == 0 ? move.count / 3 : 0;
          const backend::KvMove rest{move.from + skipped, move.to + skipped, move.count - skipped};
          for (std::size_t head = 0; head < kHeads; ++head) cpu::move_tokens(kv.view(0), 1, head, rest, rope, turn);
          const auto expected = kv.bytes();
          for (const std::uint64_t seed : {0, 1, 4}) {
            const InOrder order(seed);
            kv.restore(before);
            const KvLayer layer = kv_layer(layout, 1);
            const RopeTurns turns{turn.data(), pairs, kind};
            const std::uint32_t first_page = 0;
            const MoveTokensArgs args{&layer, &turns, kv.pages(0), &first_page, &skipped, move.from, move.to, move.count};
            emulator::launch(named("move_tokens", type).c_str(), {kHeads, 2}, kMoveThreads, move_shared_bytes(layer), args);
            CAPTURE(kernel_suffix(type), dims.key, move.from, move.to, move.count, pairs, seed);
            CHECK(kv.bytes() == expected);
          }
        }
      }
    }
  }
}

}  // namespace test_kv_kernels
