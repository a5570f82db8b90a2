// How many tokens are drafted: a number follows from costs and acceptance, here simulated without a model.
#include <random>

#include "decoding/draft_length.hpp"

#include "catch.hpp"

namespace test_draft_length {

using tessera::detail::DraftLengths;
using tessera::MeasuredCosts;

namespace {

// A machine on which a step of n rows takes fixed + n * row seconds, a draft `draft`, and each draft is right with
// chance a.
struct Machine {
  double fixed, row, draft, right;

  [[nodiscard]] double rate(std::size_t k) const {
    double tokens = 1.0, chance = 1.0;
    for (std::size_t i = 0; i < k; ++i) tokens += chance *= right;
    return tokens / (fixed + static_cast<double>(k + 1) * row + static_cast<double>(k) * draft);
  }
  [[nodiscard]] std::size_t best(std::size_t most) const {
    std::size_t best = 0;
    for (std::size_t k = 1; k <= most; ++k) best = rate(k) > rate(best) ? k : best;
    return best;
  }
};

struct Result {
  double tokens = 0, seconds = 0;
  std::vector<std::size_t> chosen;  // times
};

Result simulate(const Machine& machine, std::size_t most, std::size_t steps, std::uint32_t seed, double stalls = 0.0) {
  DraftLengths lengths(most);
  std::mt19937 random(seed);
  const auto chance = [&](double p) { return std::generate_canonical<double, 32>(random) < p; };
  Result result{.chosen = std::vector<std::size_t>(most + 1)};
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t k = lengths.choose(most, [](std::size_t) { return 0.0; });
    const double drafting = static_cast<double>(k) * machine.draft;
    if (k > 0) lengths.observe_drafting(k, drafting);
    const std::size_t kept = lengths.keep(k);
    double step = machine.fixed + static_cast<double>(kept + 1) * machine.row;
    if (chance(stalls)) step *= 1.0 + 10.0 * std::generate_canonical<double, 32>(random);
    lengths.observe_step(kept + 1, step);
    std::size_t accepted = 0;
    while (accepted < kept && chance(machine.right)) ++accepted;
    if (kept > 0) lengths.observe_accepted(kept, accepted);
    result.tokens += 1.0 + static_cast<double>(accepted);
    result.seconds += drafting + step;
    ++result.chosen[kept];
  }
  return result;
}

}  // namespace

TEST_CASE("as many are drafted as give the most tokens a second, or nearly", "[speculation]") {
  for (const double right : {0.2, 0.5, 0.75, 0.9}) {
    for (const double draft : {0.0, 0.05, 0.125, 0.3}) {
      for (const double row : {0.01, 0.1, 0.5}) {
        const Machine machine{.fixed = 1.0, .row = row, .draft = draft, .right = right};
        const double best = machine.rate(machine.best(8));
        const Result result = simulate(machine, 8, 4000, 7);
        INFO("right " << right << ", draft " << draft << ", row " << row << ", best " << machine.best(8));
        CHECK(result.tokens / result.seconds > 0.88 * best);
        CHECK(result.tokens / result.seconds > 0.98 * machine.rate(0));
      }
    }
  }
}

TEST_CASE("nothing is drafted where drafts do not pay, but for a look now and then", "[speculation]") {
  const Machine machine{.fixed = 0.0, .row = 1.0, .draft = 0.5, .right = 0.6};
  const Result result = simulate(machine, 8, 4000, 3);
  CHECK(result.chosen[0] > 3960);
  CHECK(result.chosen[0] < 4000);
}

TEST_CASE("a short text is hardly slower where drafts do not pay, however dear they are", "[speculation]") {
  for (const double draft : {0.0, 0.2, 0.5, 0.9}) {
    for (const double right : {0.0, 0.2, 0.4}) {
      for (const double row : {0.02, 0.3, 1.0}) {
        const Machine machine{.fixed = 1.0, .row = row, .draft = draft, .right = right};
        double tokens = 0.0, seconds = 0.0;
        for (std::uint32_t seed = 0; seed < 20; ++seed) {
          const Result result = simulate(machine, 8, 96, seed);
          tokens += result.tokens;
          seconds += result.seconds;
        }
        INFO("right " << right << ", draft " << draft << ", row " << row);
        // A hundredth that may be lost, and what the first draft took.
        CHECK(tokens / seconds > 0.975 * machine.rate(0));
      }
    }
  }
}

TEST_CASE("a machine that stalls now and then does not hide what pays", "[speculation]") {
  const Machine machine{.fixed = 1.0, .row = 0.02, .draft = 0.02, .right = 0.8};
  const Result calm = simulate(machine, 8, 4000, 5);
  const Result stalling = simulate(machine, 8, 4000, 5, 0.1);
  CHECK(stalling.tokens > 0.9 * calm.tokens);
}

TEST_CASE("costs between measured widths lie on a line, and never above what a wider one took", "[speculation]") {
  MeasuredCosts costs(8);
  CHECK(costs.at(3) == 0.0);
  CHECK(!costs.measured());
  CHECK(!costs.measured(2));
  costs.observe(2, 1.0);
  costs.observe(6, 3.0);
  CHECK(costs.measured(2));
  CHECK((!costs.measured(3) && !costs.measured(100)));
  CHECK(costs.at(1) == 0.5);
  CHECK(costs.at(4) == 2.0);
  CHECK(costs.at(8) == 3.0);
  CHECK(costs.at(100) == 3.0);
  costs.observe(4, 30.0);  // a stall
  CHECK(costs.at(4) == 3.0);
  costs.observe(9, 1.0);   // wider than there are
  costs.observe(3, -1.0);
  CHECK(costs.at(3) == 3.0);
}

}  // namespace test_draft_length
