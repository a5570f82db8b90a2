#include <tessera/extend/scheduler/cost_model.hpp>
#include <tessera/extend/scheduler/histogram.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "catch.hpp"

namespace test_cost_model {

using namespace tessera;

namespace {

StepLoad any_load(std::mt19937& random) {
  const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t outputs = below(17);
  const std::uint32_t rows = std::max(1u, outputs + (below(2) == 0 ? 0 : below(256)));
  return {.rows = rows, .outputs = std::min(outputs, rows), .keys = std::uint64_t{rows} * below(2000)};
}

double mean_error(const CostModel& learnt, const CostModel& truth, std::mt19937& random) {
  double sum = 0;
  for (int i = 0; i < 500; ++i) {
    const StepLoad load = any_load(random);
    sum += std::abs(learnt.predict(load) - truth.predict(load)) / truth.predict(load);
  }
  return sum / 500;
}

}  // namespace

TEST_CASE("a cost model learns what steps take from noisy steps, and again when they take longer", "[scheduler]") {
  std::mt19937 random(3);
  CostModel truth({.fixed = 8e-3, .output = 3e-4, .few_rows = 2e-4, .many_rows = 5e-4, .key = 2e-8});
  const CostModel slower({.fixed = 2e-2, .output = 9e-4, .few_rows = 6e-4, .many_rows = 2e-3, .key = 6e-8});
  CostModel learnt;
  CHECK(mean_error(learnt, truth, random) > 0.3);
  const auto learn = [&](const CostModel& from) {
    for (int i = 0; i < 1500; ++i) {
      const StepLoad load = any_load(random);
      const double noise = 1.0 + 0.2 * (static_cast<double>(random() % 1000) / 500.0 - 1.0);
      learnt.observe(load, from.predict(load) * noise);
      REQUIRE(learnt.predict(any_load(random)) > 0.0);
    }
  };
  learn(truth);
  CHECK(mean_error(learnt, truth, random) < 0.05);
  CHECK(learnt.mean_error() < 0.15);
  learn(slower);
  CHECK(mean_error(learnt, slower, random) < 0.05);
}

TEST_CASE("a cost model predicts the mean of what steps take, however they vary", "[scheduler]") {
  std::mt19937 random(5);
  CostModel learnt;
  double sum = 0;
  constexpr int kSteps = 4000;
  for (int i = 0; i < kSteps; ++i) {
    const double seconds = random() % 4 == 0 ? 0.05 : 0.02;  // a mean of 0.0275
    learnt.observe({.rows = 8, .outputs = 8, .keys = 8000}, seconds);
    if (i >= kSteps / 2) sum += learnt.predict({.rows = 8, .outputs = 8, .keys = 8000});
  }
  CHECK(std::abs(sum / (kSteps / 2) - 0.0275) < 0.0275 * 0.04);
}

TEST_CASE("what rows more take in steps in which every row draws is as measured by their number", "[scheduler]") {
  const auto drawing = [](std::uint32_t rows) { return StepLoad{.rows = rows, .outputs = rows, .keys = 0}; };
  CostModel learnt;
  CHECK(!learnt.drawing(drawing(4)));
  CHECK(learnt.more(drawing(4), drawing(5)) == learnt.predict(drawing(5)) - learnt.predict(drawing(4)));
  for (int i = 0; i < 3; ++i) {
    CHECK(!learnt.drawing(drawing(4)));
    learnt.observe(drawing(4), i == 0 ? 0.05 : 0.004);  // the first one takes longer
  }
  CHECK(learnt.drawing(drawing(4)) == 0.004);
  CHECK(learnt.more(drawing(4), drawing(8)) == 0.0);  // not tried
  for (int i = 0; i < 3; ++i) learnt.observe(drawing(8), 0.010);
  CHECK(std::abs(learnt.more(drawing(4), drawing(8)) - 0.006) < 1e-9);
  CHECK(std::abs(learnt.more(drawing(4), drawing(6)) - 0.003) < 1e-9);
  CHECK(learnt.more(drawing(4), drawing(100)) == learnt.more(drawing(4), drawing(8)));
  CHECK(!learnt.drawing(drawing(6)));
  // Steps with prompts are not among them.
  for (int i = 0; i < 50; ++i) learnt.observe({.rows = 8, .outputs = 1, .keys = 0}, 0.001);
  CHECK(learnt.drawing(drawing(8)) == 0.010);
}

TEST_CASE("a cost model that saw one kind of step only predicts no less for larger ones", "[scheduler]") {
  CostModel learnt;
  for (int i = 0; i < 200; ++i) learnt.observe({.rows = 8, .outputs = 8, .keys = 8000}, 0.02);
  const double same = learnt.predict({.rows = 8, .outputs = 8, .keys = 8000});
  CHECK(std::abs(same - 0.02) < 1e-3);
  CHECK(learnt.predict({.rows = 300, .outputs = 9, .keys = 90000}) > same);
  const double before = learnt.predict({.rows = 9, .outputs = 8, .keys = 8000});
  learnt.observe({.rows = 8}, -1.0);
  learnt.observe({.rows = 8}, std::nan(""));
  CHECK(learnt.predict({.rows = 9, .outputs = 8, .keys = 8000}) == before);
}

TEST_CASE("a histogram's percentiles are within 5 % of those of the sorted values", "[scheduler]") {
  std::mt19937_64 random(11);
  std::vector<double> values;
  Histogram one, other;
  for (int i = 0; i < 20000; ++i) {
    const double value = std::exp(static_cast<double>(random() % 10000) / 1000.0 - 8.0);
    values.push_back(value);
    (i % 2 == 0 ? one : other).add(value);
  }
  one.merge(other);
  std::ranges::sort(values);
  CHECK(one.count() == values.size());
  CHECK(one.max() == values.back());
  for (const double p : {0.01, 0.5, 0.95, 0.99}) {
    const double exact = values[static_cast<std::size_t>(p * static_cast<double>(values.size()))];
    CHECK(std::abs(one.percentile(p) / exact - 1.0) < 0.05);
  }
  CHECK(Histogram().percentile(0.5) == 0.0);
  Histogram times;
  times.add(0.5, 3);
  times.add(std::nan(""));
  CHECK(times.count() == 3);
  CHECK(times.sum() == 1.5);
  CHECK(times.at_most(1.0) == 3);
  CHECK(times.at_most(0.1) == 0);
}

}  // namespace test_cost_model
