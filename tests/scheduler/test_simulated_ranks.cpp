// Costs of steps on several ranks, from those of one: the arithmetic of docs/howto/ranks.md.
#include "catch.hpp"
#include "rank_costs.hpp"

namespace test_simulated_ranks {

using namespace tessera;
using namespace tessera::simulate;

namespace {

constexpr ModelShape kShape{.layers = 2, .width = 8, .heads = 16, .ffn = 32, .vocabulary = 100};
constexpr CostModel::Costs kOne{.fixed = 8.0, .output = 4.0, .few_rows = 2.0, .many_rows = 1.0, .key = 0.5};

}  // namespace

TEST_CASE("ranks exchange what the page says") {
  // By heads: 4 gathers in each of 2 layers, one of embeddings, one of logits; 4 bytes x (2 x (16 + 2 x 8 + 32) + 8) a row.
  const Exchanges heads = exchanges_of(kShape, RankSplit::heads, 4);
  CHECK(heads.count == 10.0);
  CHECK(heads.row_bytes == 544.0);
  CHECK(heads.output_bytes == 400.0);
  // Llama 3 8B: 104 KB in each of 32 layers, and the embedding.
  const ModelShape llama{};
  CHECK(exchanges_of(llama, RankSplit::heads, 2).row_bytes == 32 * 106496.0 + 16384.0);
  // By layers: 8 numbers of 4 bytes from each rank to the next.
  const Exchanges layers = exchanges_of(kShape, RankSplit::layers, 3);
  CHECK(layers.count == 3.0);
  CHECK(layers.row_bytes == 64.0);
  CHECK(exchanges_of(kShape, RankSplit::heads, 1).count == 0.0);
}

TEST_CASE("a step's cost on ranks is its part of the computing, and the exchanges") {
  const Link link{.delay = 0.25, .rate = 16.0};
  const CostModel::Costs four = costs_on_ranks(kOne, kShape, RankSplit::heads, 4, link);
  CHECK(four.fixed == 8.0 / 4 + 10 * 0.25);
  CHECK(four.output == 4.0 / 4 + 400.0 * 0.75 / 16);
  CHECK(four.few_rows == 2.0 / 4 + 544.0 * 0.75 / 16);
  CHECK(four.many_rows == 1.0 / 4 + 544.0 * 0.75 / 16);
  CHECK(four.key == 0.5 / 4);
  const CostModel::Costs three = costs_on_ranks(kOne, kShape, RankSplit::layers, 3, link);
  CHECK(three.fixed == 8.0 + 3 * 0.25);
  CHECK(three.few_rows == 2.0 + 64.0 / 16);
  CHECK(three.key == 0.5);
  const CostModel::Costs one = costs_on_ranks(kOne, kShape, RankSplit::heads, 1, link);
  CHECK(one.fixed == kOne.fixed);
  CHECK(one.few_rows == kOne.few_rows);
}

TEST_CASE("with a link that costs nothing, N ranks take an N-th of the time") {
  const CostModel one(kOne), four(costs_on_ranks(kOne, kShape, RankSplit::heads, 4, {.delay = 0.0, .rate = 1e15}));
  const StepLoad load{.rows = 20, .outputs = 3, .keys = 100};
  CHECK(four.predict(load) == Approx(one.predict(load) / 4));
}

}  // namespace test_simulated_ranks
