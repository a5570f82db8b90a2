// The kernels of experts on the emulator: routing beside the CPU's, the lists of slots, products of slots, and the weighted sum.
#include <emulator/launch.hpp>

#include <limits>
#include <random>

#include "catch.hpp"
#include "cpu/experts/routing.hpp"
#include "cuda/kernels/elementwise.hpp"
#include "cuda/kernels/experts.hpp"
#include "cuda/kernels/products/linear_few.hpp"
#include "cuda/kernels/products/linear_slots.hpp"
#include "weights.hpp"

namespace test_expert_kernels {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT
using namespace tessera::test;  // NOLINT

namespace {

std::vector<float> random_floats(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

struct Routed {
  std::vector<std::uint32_t> chosen;
  std::vector<float> weights;
};

Routed by_kernel(const backend::Routing& how, const std::vector<float>& logits, std::uint32_t n_experts, const std::vector<float>& bias,
                 const std::vector<float>& scales) {
  const auto rows = static_cast<std::uint32_t>(logits.size() / n_experts);
  Routed routed{std::vector<std::uint32_t>(rows * how.n_used, 12345), std::vector<float>(rows * how.n_used)};
  emulator::launch("route_experts", {rows}, kRouteThreads, route_shared_bytes(n_experts, how.n_groups),
                   RouteArgs{.logits = logits.data(),
                             .bias = bias.empty() ? nullptr : bias.data(),
                             .scales = scales.empty() ? nullptr : scales.data(),
                             .chosen = routed.chosen.data(),
                             .weights = routed.weights.data(),
                             .n_experts = n_experts,
                             .n_used = how.n_used,
                             .n_groups = how.n_groups,
                             .n_used_groups = how.n_used_groups,
                             .kind = how.kind,
                             .group_score = how.group_score,
                             .scale = how.scale,
                             .renormalises = how.renormalises ? 1u : 0u});
  return routed;
}

void check_routing(const backend::Routing& how, std::vector<float> logits, std::uint32_t n_experts, const std::vector<float>& bias,
                   const std::vector<float>& scales) {
  const Routed ours = by_kernel(how, logits, n_experts, bias, scales);
  std::vector<std::uint32_t> chosen(how.n_used);
  std::vector<float> weights(how.n_used);
  for (std::size_t row = 0; row * n_experts < logits.size(); ++row) {
    cpu::route(how, bias, scales, std::span(logits).subspan(row * n_experts, n_experts), chosen, weights);
    for (std::size_t i = 0; i < how.n_used; ++i) {
      CHECK(ours.chosen[row * how.n_used + i] == chosen[i]);
      if (how.kind == RoutingKind::softmax) CHECK(ours.weights[row * how.n_used + i] == Approx(weights[i]).epsilon(1e-5));
      else CHECK(ours.weights[row * how.n_used + i] == weights[i]);
    }
  }
}

}  // namespace

TEST_CASE("four numbers in, four out: the best two of four experts, and their weights") {
  const Routed routed = by_kernel({.kind = RoutingKind::chosen_softmax, .n_used = 2}, {1, 3, 2, 0}, 4, {}, {});
  CHECK(routed.chosen == std::vector<std::uint32_t>{1, 2});
  CHECK(routed.weights[0] == Approx(0.7310586));  // 1 / (1 + exp(2 - 3))
  CHECK(routed.weights[1] == Approx(0.2689414));
}

TEST_CASE("experts are chosen and weighed as on the CPU") {
  const RoutingKind kind = GENERATE(RoutingKind::softmax, RoutingKind::chosen_softmax, RoutingKind::sigmoid);
  const std::uint32_t n_experts = GENERATE(4u, 32u, 72u);
  const std::vector<float> logits = random_floats(std::size_t{9} * n_experts, n_experts), bias = random_floats(n_experts, 3),
                           scales = random_floats(n_experts, 4);
  CAPTURE(static_cast<int>(kind), n_experts);
  check_routing({.kind = kind, .n_used = 4}, logits, n_experts, {}, {});
  check_routing({.kind = kind, .n_used = 2, .renormalises = true, .scale = 2.5f}, logits, n_experts, bias, scales);
  for (const GroupScore score : {GroupScore::two_best, GroupScore::best}) {
    check_routing({.kind = kind, .n_used = 1, .n_groups = 4, .n_used_groups = 2, .group_score = score}, logits, n_experts, bias, {});
    check_routing({.kind = kind, .n_used = 1, .n_groups = 4, .n_used_groups = 1, .group_score = score}, logits, n_experts, {}, {});
  }
}

TEST_CASE("of equal scores the first expert is chosen, and NaN and infinities come last") {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits : {std::vector<float>(8, 1.0f), {kNaN, 0, kNaN, 1, -kInf, 0, 2, 0}, std::vector<float>(8, kNaN),
                                           {-kInf, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf, 0}}) {
    std::vector<float> copy = logits;
    std::vector<std::uint32_t> chosen(4);
    std::vector<float> weights(4);
    const backend::Routing how{.kind = RoutingKind::chosen_softmax, .n_used = 4};
    cpu::route(how, {}, {}, copy, chosen, weights);
    CHECK(by_kernel(how, logits, 8, {}, {}).chosen == chosen);
  }
}

TEST_CASE("slots are sorted by expert and row, and cut into tiles; products of slots are those of rows") {
  const DType type = GENERATE(from_range(device_types().begin(), device_types().end()));
  const std::uint32_t tile_slots = GENERATE(1u, 4u);
  const std::uint32_t rows = 11, n_used = 2, n_experts = 5, outputs = 6, n_slots = rows * n_used;
  const auto inputs = static_cast<std::uint32_t>(formats::block_of(type)->values == 1 ? 40 : 512);
  CAPTURE(to_string(type), tile_slots);
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t r = 0; r < rows; ++r) {  // no row takes expert 3
    chosen.push_back(r % 3);
    chosen.push_back(r % 2 == 0 ? 4 : r % 3);
  }
  std::vector<std::uint32_t> slots(n_slots), first(n_experts), first_tile(n_experts), n_tiles(1);
  std::vector<SlotTile> tiles(n_slots);
  emulator::launch("deal_experts", {}, kDealThreads, 0,
                   DealArgs{chosen.data(), slots.data(), first.data(), first_tile.data(), tiles.data(), n_tiles.data(), n_slots, n_experts,
                            tile_slots});
  CHECK(n_tiles[0] <= most_tiles(n_slots, n_experts, tile_slots));
  std::uint32_t seen = 0, last = 0;
  for (std::uint32_t t = 0; t < n_tiles[0]; ++t) {
    CHECK(tiles[t].first == seen);
    CHECK((tiles[t].count >= 1 && tiles[t].count <= tile_slots));
    CHECK(tiles[t].matrix >= last);
    last = tiles[t].matrix;
    for (std::uint32_t i = 0; i < tiles[t].count; ++i) {
      const std::uint32_t slot = slots[seen + i];
      CHECK(chosen[slot] == tiles[t].matrix);
      if (i > 0) CHECK(slots[seen + i - 1] < slot);
    }
    seen += tiles[t].count;
  }
  CHECK(seen == n_slots);

  const Weights w(type, n_experts * outputs, inputs, encoded(type, n_experts * outputs, inputs, 5));
  const std::vector<float> x = random_floats(std::size_t{rows} * inputs, 6), bias = random_floats(n_experts * outputs, 7),
                           factors = random_floats(n_experts, 8);
  const std::string name(form_name(w.matrix.form));
  std::vector<float> all(std::size_t{rows} * n_experts * outputs), out(std::size_t{n_slots} * outputs);
  emulator::launch(("linear_few_" + name + "_r1").c_str(), {rows, 8}, 32, 0,
                   LinearArgs{w.matrix, x.data(), nullptr, all.data(), rows, inputs, n_experts * outputs, LinearStore::set});
  emulator::launch(("linear_slots_" + name + "_r" + std::to_string(tile_slots)).c_str(), {most_tiles(n_slots, n_experts, tile_slots), 1},
                   64, 0,
                   LinearSlotsArgs{.weight = w.matrix, .tiles = tiles.data(), .n_tiles = n_tiles.data(), .slots = slots.data(),
                                   .x = x.data(), .bias = bias.data(), .factors = factors.data(), .out = out.data(),
                                   .matrices = n_experts, .outputs = outputs, .sharing = n_used, .x_stride = inputs});
  std::size_t wrong = 0;
  for (std::uint32_t slot = 0; slot < n_slots; ++slot) {
    for (std::uint32_t o = 0; o < outputs; ++o) {
      const std::uint32_t at = chosen[slot] * outputs + o;
      const float product = all[std::size_t{slot / n_used} * n_experts * outputs + at] * factors[chosen[slot]];
      wrong += out[slot * outputs + o] != product + bias[at];
    }
  }
  CHECK(wrong == 0);

  const std::vector<float> weights = random_floats(n_slots, 9);
  std::vector<float> sums(std::size_t{rows} * outputs);
  emulator::launch("sum_experts", {rows}, kRowThreads, 0, SumExpertsArgs{out.data(), weights.data(), sums.data(), n_used, outputs});
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t o = 0; o < outputs; ++o) {
      float sum = 0.0f;
      for (std::uint32_t i = r * n_used; i < (r + 1) * n_used; ++i) sum = sum + weights[i] * out[i * outputs + o];
      CHECK(sums[r * outputs + o] == sum);
    }
  }
}

TEST_CASE("each head has its own matrix") {
  const std::uint32_t rows = 6, heads = 3, inputs = 32, outputs = 5;
  const Weights w(DType::q8_0, heads * outputs, inputs, encoded(DType::q8_0, heads * outputs, inputs, 5));
  const std::vector<float> x = random_floats(std::size_t{rows} * heads * inputs, 6);
  for (const std::uint32_t at_once : {1u, 4u}) {
    std::vector<float> out(std::size_t{rows} * heads * outputs);
    emulator::launch(("linear_slots_block32_8_r" + std::to_string(at_once)).c_str(), {(rows + at_once - 1) / at_once * heads, 1}, 64, 0,
                     LinearSlotsArgs{.weight = w.matrix, .x = x.data(), .out = out.data(), .matrices = heads, .outputs = outputs,
                                     .n_rows = rows, .x_stride = inputs});
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t h = 0; h < heads; ++h) {
        std::vector<float> all(heads * outputs);
        emulator::launch("linear_few_block32_8_r1", {1, 4}, 32, 0,
                         LinearArgs{w.matrix, x.data() + (r * heads + h) * inputs, nullptr, all.data(), 1, inputs, heads * outputs,
                                    LinearStore::set});
        for (std::uint32_t o = 0; o < outputs; ++o) CHECK(out[(r * heads + h) * outputs + o] == all[h * outputs + o]);
      }
    }
  }
}

}  // namespace test_expert_kernels
