// Which samplers can be said in numbers, and that the numbers say what the sampler does.
#include <functional>

#include "rig.hpp"

#include "catch.hpp"

namespace test_recipe {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

namespace {

Recipe recipe_of(const Sampler& sampler) {
  const auto recipe = sampler.recipe();
  REQUIRE(recipe);
  return *recipe;
}

Sampler rebuilt(const Recipe& recipe) {
  auto made = chain();
  for (std::uint32_t i = 0; i < recipe.steps.size; ++i) {
    const SampleStep& step = recipe.steps.list[i];
    switch (step.kind) {
      case SampleStepKind::greedy: made.greedy(); break;
      case SampleStepKind::temperature: made.temperature(step.value); break;
      case SampleStepKind::top_k: made.top_k(step.count); break;
      case SampleStepKind::top_p: made.top_p(step.value, step.count); break;
    }
  }
  return made.seed(recipe.seed, recipe.stream).build();
}

// The library's own temperature as a user's stage.
class Hotter final : public Stage {
 public:
  Status apply(Candidates& candidates, const Context& context) override {
    Temperature{2.0f}(candidates, context);
    return {};
  }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<Hotter>(*this); }
  std::optional<SampleStep> step() const noexcept override { return Temperature{2.0f}.step(); }
};

}  // namespace

TEST_CASE("a recipe says the steps in their order, the seed and the stream") {
  const auto sampler = chain().top_k(40).temperature(0.7f).top_p(0.9f, 3).greedy().seed(42, 7).build();
  const Recipe recipe = recipe_of(sampler);
  REQUIRE(recipe.steps.size == 4);
  const auto& steps = recipe.steps.list;
  CHECK(steps[0].kind == SampleStepKind::top_k);
  CHECK(steps[0].count == 40);
  CHECK(steps[1].kind == SampleStepKind::temperature);
  CHECK(steps[1].value == 0.7f);
  CHECK(steps[2].kind == SampleStepKind::top_p);
  CHECK(steps[2].value == 0.9f);
  CHECK(steps[2].count == 3);
  CHECK(steps[3].kind == SampleStepKind::greedy);
  CHECK(recipe.seed == 42);
  CHECK(recipe.stream == 7);
}

TEST_CASE("no stages are the plain softmax") { CHECK(recipe_of(chain().seed(1).build()).steps.size == 0); }

TEST_CASE("a recipe follows reseed and clone") {
  auto sampler = chain().top_k(2).seed(1, 2).build();
  sampler.reseed(3, 4);
  const auto copy = sampler.clone();
  REQUIRE(copy);
  CHECK(recipe_of(*copy).seed == 3);
  CHECK(recipe_of(*copy).stream == 4);
}

TEST_CASE("other stages have no recipe") {
  const std::vector<std::function<void(Chain&)>> others = {
      [](Chain& c) { c.min_p(0.1f); },
      [](Chain& c) { c.typical_p(0.9f); },
      [](Chain& c) { c.top_n_sigma(1.0f); },
      [](Chain& c) { c.penalties({.repetition = 1.1f}); },
      [](Chain& c) { c.logit_bias({{3, 1.0f}}); },
      [](Chain& c) { c.allow({1, 2}); },
      [](Chain& c) { c.deny({1, 2}); },
      [](Chain& c) { c.xtc({}); },
      [](Chain& c) { c.dry({}); },
      [](Chain& c) { c.mirostat({}); },
      [](Chain& c) { c.dynamic_temperature({}); },
      [](Chain& c) { c.stage([](Candidates&, const Context&) {}); },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    auto made = chain();
    made.temperature(0.8f);
    others[i](made);
    made.top_k(5);
    CHECK_FALSE(made.build().recipe());
  }
}

TEST_CASE("nor has a sampler that cannot be used, or that has too many stages") {
  CHECK_FALSE(chain().temperature(-1.0f).build().recipe());
  auto emptied = chain().build();
  const auto taken = std::move(emptied);
  CHECK_FALSE(emptied.recipe());

  auto most = chain();
  for (std::uint32_t i = 0; i < kMaxSampleSteps; ++i) most.top_k(5);
  CHECK(most.build().recipe());
  auto more = chain();
  for (std::uint32_t i = 0; i <= kMaxSampleSteps; ++i) more.top_k(5);
  CHECK_FALSE(more.build().recipe());
}

TEST_CASE("a user's stage may say its step") {
  const Recipe recipe = recipe_of(chain().stage(std::make_unique<Hotter>()).build());
  REQUIRE(recipe.steps.size == 1);
  CHECK(recipe.steps.list[0].kind == SampleStepKind::temperature);
  CHECK(recipe.steps.list[0].value == 2.0f);
}

TEST_CASE("a sampler made of its recipe draws the same tokens, out of the same numbers") {
  const auto logits = random_logits(500, 0, 5);
  auto sampler = chain().temperature(1.2f).top_k(60).top_p(0.9f).seed(11, 3).build();
  const Recipe recipe = recipe_of(sampler);
  auto other = rebuilt(recipe);
  for (std::uint64_t position = 0; position < 200; ++position) {
    const auto token = sampler.sample(logits, {}, position);
    REQUIRE(token);
    CHECK(*other.sample(logits, {}, position) == *token);
    const auto distribution = *sampler.distribution(logits, {}, position);
    CHECK(distribution[draw(distribution, recipe.uniform(position))].token == *token);
  }
}

}  // namespace test_recipe
