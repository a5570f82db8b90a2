// What speculation would bring, by numbers that can be worked out by hand.
#include <cmath>
#include <limits>

#include <tessera/unstable/decoding/speculation_estimate.hpp>

#include "catch.hpp"

namespace test_speculation_estimate {

using namespace tessera;

namespace {

SpeculationEstimate estimate(const SpeculationCosts& costs) {
  const auto made = estimate_speculation(costs);
  REQUIRE(made.has_value());
  return *made;
}

bool near(double a, double b) { return std::abs(a - b) < 1e-9; }

}  // namespace

TEST_CASE("40 ms a token, 5 ms a draft, three of four right, 4 drafts: 3.05 tokens in 60 ms, 2.03 times as fast", "[speculation]") {
  const auto e = estimate({.target_seconds = 0.040, .draft_seconds = 0.005, .acceptance = 0.75, .drafts = 4});
  CHECK(near(e.tokens, (1 - std::pow(0.75, 5)) / (1 - 0.75)));
  CHECK(std::abs(e.tokens - 3.0508) < 1e-4);
  CHECK(near(e.cycle_seconds, 0.060));
  CHECK(std::abs(e.speedup - 2.0339) < 1e-4);
  CHECK(near(e.token_seconds, 0.060 / e.tokens));
  // At the break-even, a cycle gives 60 / 40 tokens.
  REQUIRE(e.break_even.has_value());
  CHECK(near((1 - std::pow(*e.break_even, 5)) / (1 - *e.break_even), 1.5));
}

TEST_CASE("the estimate at its ends", "[speculation]") {
  CHECK(near(estimate({.target_seconds = 1, .acceptance = 1, .drafts = 7}).speedup, 8));
  CHECK(near(estimate({.target_seconds = 1, .acceptance = 0, .drafts = 7}).tokens, 1));
  CHECK(near(estimate({.target_seconds = 1, .draft_seconds = 5, .acceptance = 0.9}).speedup, 1));  // no drafts
  CHECK(near(estimate({.target_seconds = 1, .verify_seconds = 2, .acceptance = 1, .drafts = 3}).speedup, 2));
  CHECK(!estimate({.target_seconds = 1, .draft_seconds = 1.1, .acceptance = 1, .drafts = 4}).break_even);
  CHECK(near(*estimate({.target_seconds = 1, .draft_seconds = 0.5, .acceptance = 0.3, .drafts = 1}).break_even, 0.5));
}

TEST_CASE("an estimate of what cannot be is an error", "[speculation]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(!estimate_speculation({}));
  CHECK(!estimate_speculation({.target_seconds = nan}));
  CHECK(!estimate_speculation({.target_seconds = 1, .draft_seconds = -1}));
  CHECK(!estimate_speculation({.target_seconds = 1, .verify_seconds = nan}));
  CHECK(!estimate_speculation({.target_seconds = 1, .acceptance = 1.1}));
  CHECK(!estimate_speculation({.target_seconds = 1, .acceptance = nan}));
  CHECK(!estimate_speculation({.target_seconds = 1, .drafts = 65}));
}

}  // namespace test_speculation_estimate
