// Costs of tokens, by numbers that can be worked out by hand.
#include <cmath>
#include <string>

#include "catch.hpp"
#include "cost_model.hpp"
#include "scenario.hpp"

namespace test_token_cost {

using namespace tessera;
using namespace tessera::cost;

namespace {

bool near(double a, double b) { return std::abs(a - b) < 1e-9 * std::max(1.0, std::abs(b)); }

ModelCost must_cost(const Model& model) {
  const auto cost = cost_of(model);
  INFO(cost.error().text());
  REQUIRE(cost);
  return *cost;
}
MixCost must_cost(const Mix& mix) {
  const auto cost = cost_of(mix);
  INFO(cost.error().text());
  REQUIRE(cost);
  return *cost;
}
Scenario must_parse(std::string_view text) {
  const auto scenario = parse_scenario(text);
  INFO(scenario.error().text());
  REQUIRE(scenario);
  return *scenario;
}

Tier tier(double share, double price, double again = 0) {
  return {.name = "t", .prompt_million = price, .answer_million = price, .share = share, .again = again};
}

}  // namespace

TEST_CASE("a machine for 3.60 an hour that writes 1000 tokens a second costs 1.00 a million tokens", "[cost]") {
  // 1,000,000 tokens / 1000 = 1000 s, and a second costs 3.60 / 3600 = 0.001.
  const ModelCost cost = must_cost(Model{.machine = {.hour = 3.6}, .prompt_rate = 10'000, .answer_rate = 1000});
  CHECK(near(cost.answer_million, 1.0));
  CHECK(near(cost.prompt_million, 0.1));
  // Half of the time idle: twice the price. A model of 90 GiB on machines of 40 GiB: three machines.
  CHECK(near(must_cost(Model{.machine = {.hour = 3.6}, .answer_rate = 1000, .busy = 0.5}).answer_million, 2.0));
  const std::uint64_t gib = std::uint64_t{1} << 30;
  const ModelCost large = must_cost(Model{.machine = {.hour = 3.6, .memory = 40 * gib}, .answer_rate = 1000, .memory = 90 * gib});
  CHECK(large.machines == 3);
  CHECK(near(large.answer_million, 3.0));
  CHECK(must_cost(Model{.machine = {.hour = 3.6, .memory = 40 * gib}, .answer_rate = 1000, .memory = 40 * gib}).machines == 1);
}

TEST_CASE("a 70B model at 40 ms with drafts of a 7B model at 5 ms, a = 0.75, k = 4, costs 1 / 2.03 of the price", "[cost]") {
  // E = 1 + 0.75 + 0.5625 + 0.421875 + 0.31640625 = 3.05078125 tokens in 4 * 5 + 40 = 60 ms; without drafts they take 40 E ms.
  const double speedup = 3.05078125 * 40 / 60;
  Model model{.machine = {.hour = 4}, .prompt_rate = 5000, .answer_rate = 25};
  const ModelCost plain = must_cost(model);
  model.speculation = SpeculationCosts{.target_seconds = 0.040, .draft_seconds = 0.005, .acceptance = 0.75, .drafts = 4};
  const ModelCost drafted = must_cost(model);
  REQUIRE(drafted.speculation);
  CHECK(near(drafted.speculation->speedup, speedup));
  CHECK(near(plain.answer_million, 4.0 / 3600 / 25 * 1e6));
  CHECK(near(drafted.answer_million, plain.answer_million / speedup));
  CHECK(near(drafted.prompt_million, plain.prompt_million));  // drafts are for answers
}

TEST_CASE("60 % at 0.20, 30 % at 1.00 and 10 % at 10.00 a million tokens cost 1.42: 85.8 % less than 10.00 for all", "[cost]") {
  Mix mix{.size = {.prompt = 700, .answer = 300}, .baseline = tier(0, 10), .tiers = {tier(0.6, 0.2), tier(0.3, 1), tier(0.1, 10)}};
  const MixCost cost = must_cost(mix);
  CHECK(near(cost.million, 1.42));
  CHECK(near(cost.saved, 0.858));
  CHECK(near(cost.baseline_thousand, 10.0));  // 1000 tokens a request
  // If the best model answers a fifth of the first tier again, 0.6 * 0.2 * 10 = 1.20 more.
  mix.tiers[0].again = 0.2;
  CHECK(near(must_cost(mix).million, 2.62));
}

TEST_CASE("25 % cached, then 35 % routed away, then 20 % compressed save 55 to 61 %", "[cost]") {
  // 0.75 * 0.65 * 0.8 = 0.39 of the price if prompts are all of it; the answers' share of 60 % is not compressed: 0.4875 * 0.92 = 0.4485.
  const auto saved = [](double prompt, double answer) {
    return must_cost(Mix{.size = {.prompt = prompt, .answer = answer},
                         .baseline = tier(0, 1),
                         .savings = {{.name = "cached", .share = 0.25}, {.name = "routed", .share = 0.35}, {.name = "compressed", .share = 0.2, .of = Saving::Of::prompt}}});
  };
  const MixCost prompts = saved(1000, 0), mixed = saved(400, 600);
  CHECK(near(prompts.saved, 0.61));
  CHECK(near(mixed.saved, 0.5515));
  REQUIRE(mixed.steps.size() == 3);
  CHECK(near(mixed.steps[0].saved, 0.25));
  CHECK(near(mixed.steps[1].saved, 0.5125));
}

TEST_CASE("work in front and compared answers are added", "[cost]") {
  const MixCost cost = must_cost(Mix{.size = {.prompt = 500, .answer = 500}, .baseline = tier(0, 2), .tiers = {tier(1, 1)}, .sampled = 0.05, .lookup = 0.1});
  CHECK(near(cost.thousand, 1 + 0.1 + 0.05 * 2));
  CHECK(cost.steps.back().name == "answers compared");
}

TEST_CASE("a cost that cannot be is refused with the place", "[cost]") {
  CHECK_THAT(cost_of(Model{.name = "m"}).error().text(), Catch::Contains("m: state the tokens a second"));
  CHECK_FALSE(cost_of(Model{.machine = {.hour = 1}, .answer_rate = 1, .busy = 0}));
  CHECK_FALSE(cost_of(Model{.machine = {.hour = -1}, .answer_rate = 1}));
  CHECK_THAT(cost_of(Mix{.baseline = tier(0, 1), .tiers = {tier(0.5, 1)}}).error().text(), Catch::Contains("add up to 50 percent"));
  CHECK_FALSE(cost_of(Mix{.size = {.prompt = 0, .answer = 0}, .baseline = tier(0, 1)}));
  CHECK_FALSE(cost_of(Mix{.baseline = tier(0, 1), .savings = {{.share = 1.5}}}));
  CHECK_FALSE(cost_of(Model{.speculation = SpeculationCosts{.target_seconds = 1}, .prompt_price = 1}));
}

TEST_CASE("a scenario's file: machines, models, a mix", "[cost]") {
  const Scenario s = must_parse(R"({
    "machines": {"gpu": {"hour": 3.6, "memory": "80GiB"}},
    "models": {
      "large": {"machine": "gpu", "answer_rate": 1000, "prompt_rate": 10000, "busy": 50, "memory": "45GiB"},
      "small": {"prompt_price": 0.1, "answer_price": 0.4}
    },
    "mix": {"request": {"prompt": 1000, "answer": 100}, "tiers": [{"model": "small", "share": 75, "again": 20}, {"model": "large", "share": 25}],
            "savings": [{"name": "cached", "share": 50}], "sampled": 1, "requests_a_day": 1000}
  })");
  REQUIRE(s.models.size() == 2);
  CHECK(near(s.models[0].second.answer_million, 2.0));
  REQUIRE(s.mix);
  CHECK(s.mix->baseline.name == "large");
  // Large: 1000 * 0.2 + 100 * 2 = 400 millionths a request; small: 100 + 40 = 140. (0.75 * (140 + 0.2 * 400) + 0.25 * 400) / 2 + 0.01 * 400
  CHECK(near(must_cost(*s.mix).thousand, 1000 * ((0.75 * 220 + 100) / 2 + 4) / 1e6));
}

TEST_CASE("a broken scenario's file is an error that names the member", "[cost]") {
  const auto error = [](std::string_view text) { return parse_scenario(text).error().text(); };
  CHECK_THAT(error("{"), Catch::Contains("parse error"));
  CHECK_THAT(error("{}"), Catch::Contains("models"));
  CHECK_THAT(error(R"({"models": {"m": {"machine": "gpu"}}})"), Catch::Contains("models.m.machine: there is no machine \"gpu\""));
  CHECK_THAT(error(R"({"models": {"m": {"prompt_pric": 1}}})"), Catch::Contains("there is no member \"prompt_pric\""));
  CHECK_THAT(error(R"({"models": {"m": {"prompt_price": "1"}}})"), Catch::Contains("models.m.prompt_price: must be a number"));
  CHECK_THAT(error(R"({"models": {"m": {"prompt_price": 1}}, "mix": {"tiers": [{"model": "x"}]}})"), Catch::Contains("mix.tiers[0]"));
  CHECK_THAT(error(R"({"machines": {"g": {"hour": 1, "memory": "lots"}}, "models": {}})"), Catch::Contains("machines.g.memory"));
}

TEST_CASE("rates of tessera-bench are read from its lines", "[cost]") {
  const auto rates = measured_rates("{\"test\": \"prefill\", \"tokens_per_s\": 900.5}\nnoise\n{\"test\": \"decode\", \"tokens_per_s\": 40}\n{\"test\": \"batch\", \"tokens_per_s\": 160}\n");
  REQUIRE(rates);
  CHECK(near(rates->prompt, 900.5));
  CHECK(near(rates->answer, 160));
  CHECK_FALSE(measured_rates("{\"test\": \"prefill\", \"tokens_per_s\": 900.5}"));
}

}  // namespace test_token_cost
