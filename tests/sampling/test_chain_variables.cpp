// Chains that have names, and stages that are not there.
#include <functional>

#include "rig.hpp"

#include "catch.hpp"

namespace test_chain_variables {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

namespace {

void expect_null_stage(const Sampler& sampler) {
  const Status status = sampler.status();
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == ErrorCode::invalid_argument);
  CHECK_THAT(status.error().message(), Catch::Contains("stage 2 of the chain is a null pointer"));
}

}  // namespace

TEST_CASE("a chain can be kept in a variable at any point, and gives the sampler of one expression") {
  auto grown = chain();
  grown.temperature(0.8f).top_k(40);
  grown.seed(3);
  auto kept = chain().temperature(0.8f).top_k(40);
  auto sampler = std::move(kept).seed(3).build();
  auto begun = chain().stage([](Candidates&, const Context&) {}).allow({1, 2, 3}).deny({2}).logit_bias({{1, 1.0f}});
  CHECK(begun.top_p(0.9f).build().status());

  auto other = grown.build();
  auto whole = chain().temperature(0.8f).top_k(40).seed(3).build();
  const auto logits = random_logits(300, 0, 1);
  for (std::uint64_t position = 0; position < 20; ++position) {
    const auto wanted = whole.sample(logits, {}, position);
    REQUIRE(wanted);
    CHECK(*sampler.sample(logits, {}, position) == *wanted);
    CHECK(*other.sample(logits, {}, position) == *wanted);
  }
}

TEST_CASE("a null stage is named, and its place") {
  expect_null_stage(chain().greedy().stage(std::unique_ptr<Stage>()).top_k(3).build());
  expect_null_stage(chain().greedy().stage(nullptr).build());
  void (*function)(Candidates&, const Context&) = nullptr;
  expect_null_stage(chain().greedy().stage(function).build());
  expect_null_stage(chain().greedy().stage(std::function<Status(Candidates&, const Context&)>()).build());
}

}  // namespace test_chain_variables
