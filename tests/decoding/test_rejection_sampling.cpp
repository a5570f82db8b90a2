// Rejection sampling keeps the target's distribution, and its acceptance is the sum of the smaller probabilities.
#include <cmath>
#include <limits>
#include <vector>

#include <tessera/decoding/rejection_sampling.hpp>
#include <tessera/sampling/philox.hpp>

#include "catch.hpp"

namespace test_rejection_sampling {

using namespace tessera;

namespace {

using Distribution = std::vector<float>;

// Uniform numbers of one purpose each.
double uniform(std::uint64_t draw, std::uint32_t purpose) { return sampling::philox_uniform(11, draw, purpose, 0); }

Token drawn(const Distribution& from, double uniform) {
  double sum = 0.0, running = 0.0;
  for (const float weight : from) sum += static_cast<double>(weight);
  std::size_t last = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] > 0.0f) last = i;
    running += static_cast<double>(from[i]) / sum;
    if (uniform < running) break;
  }
  return static_cast<Token>(last);
}

}  // namespace

TEST_CASE("tokens are distributed as the target says, and as many drafts are kept as the formula says", "[speculation]") {
  const std::pair<Distribution, Distribution> cases[] = {
      {{0.5f, 0.3f, 0.2f}, {0.5f, 0.3f, 0.2f}},                            // alike: all are kept
      {{0.1f, 0.2f, 0.3f, 0.4f}, {0.4f, 0.3f, 0.2f, 0.1f}},
      {{0.7f, 0.0f, 0.1f, 0.2f}, {0.1f, 0.8f, 0.1f, 0.0f}},                // each has tokens that the other lacks
      {{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f}, {3.0f, 3.0f, 3.0f, 3.0f, 3.0f, 3.0f, 3.0f, 3.0f}},  // weights
      {{0.0f, 0.0f, 1.0f}, {0.5f, 0.5f, 0.0f}},                            // nothing in common
  };
  constexpr std::uint64_t kDraws = 1000000;
  // The 99.99th percentile of chi-square with 2, 3 and 7 degrees of freedom, which random numbers of a fixed seed meet or do not.
  const auto bound = [](std::size_t freedom) { return freedom <= 2 ? 18.4 : freedom == 3 ? 21.1 : 29.9; };
  for (const auto& [target, draft] : cases) {
    std::vector<std::uint64_t> counts(target.size());
    std::uint64_t accepted = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const auto token = draw_by_rejection(target, draft, drawn(draft, uniform(i, 0)), uniform(i, 1), uniform(i, 2));
      REQUIRE(token);
      ++counts[static_cast<std::size_t>(token->token)];
      accepted += token->accepted ? 1 : 0;
    }
    double sum = 0.0, chi = 0.0;
    for (const float weight : target) sum += static_cast<double>(weight);
    for (std::size_t i = 0; i < target.size(); ++i) {
      const double expected = static_cast<double>(kDraws) * static_cast<double>(target[i]) / sum;
      if (target[i] == 0.0f) CHECK(counts[i] == 0);
      else chi += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
    }
    INFO(target.size() << " tokens, chi-square " << chi);
    CHECK(chi < bound(target.size() - 1));
    const auto acceptance = rejection_acceptance(target, draft);
    REQUIRE(acceptance);
    const double share = static_cast<double>(accepted) / static_cast<double>(kDraws);
    CHECK(std::abs(share - *acceptance) <= 4.0 * std::sqrt(*acceptance * (1.0 - *acceptance) / static_cast<double>(kDraws)) + 1e-6);
  }
}

TEST_CASE("distributions that are none are errors", "[speculation]") {
  const Distribution good = {0.5f, 0.5f}, longer = {0.5f, 0.25f, 0.25f}, zero = {0.0f, 0.0f}, negative = {1.5f, -0.5f};
  const Distribution infinite = {std::numeric_limits<float>::infinity(), 0.0f}, one = {1.0f, 0.0f};
  CHECK(draw_by_rejection(good, longer, 0, 0.5, 0.5).error().code() == ErrorCode::invalid_argument);
  CHECK(draw_by_rejection(good, one, 1, 0.5, 0.5).error().code() == ErrorCode::invalid_argument);  // which `one` never gives
  CHECK(draw_by_rejection(good, good, 2, 0.5, 0.5).error().code() == ErrorCode::invalid_argument);
  CHECK(draw_by_rejection(good, good, -1, 0.5, 0.5).error().code() == ErrorCode::invalid_argument);
  for (const Distribution& bad : {zero, negative, infinite}) {
    CHECK(draw_by_rejection(bad, good, 0, 0.5, 0.5).error().code() == ErrorCode::numeric);
    CHECK(rejection_acceptance(good, bad).error().code() == ErrorCode::numeric);
  }
}

}  // namespace test_rejection_sampling
