#include "decoding/draft_economy.hpp"

#include <random>

#include "catch.hpp"

namespace test_draft_economy {

using tessera::detail::DraftLedger;
using tessera::detail::Goodput;
using tessera::detail::pays;

namespace {

// Steps of 8 rows that take 1, with drafts `seconds` for `tokens` as many tokens on average.
struct Served {
  double seconds = 0.0, tokens = 0.0;
  int drafted = 0;
};
Served serve(double seconds, double tokens, int steps, std::uint32_t seed) {
  DraftLedger ledger({.widths = 256, .plain = 3, .memory = 0.998});
  std::mt19937 random(seed);
  Served served;
  for (int i = 0; i < steps; ++i) {
    const bool drafts = ledger.may_draft(8);
    const double given = drafts ? tokens * (0.5 + static_cast<double>(random() % 1000) / 999.0) : 1.0;
    const double took = drafts ? seconds : 1.0;
    served.seconds += took;
    served.tokens += given;
    served.drafted += drafts ? 1 : 0;
    ledger.observe({.seconds = took, .without = given});
  }
  return served;
}

}  // namespace

TEST_CASE("drafts that lose are made as long as they have lost a hundredth, beside the first of them", "[speculation]") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Served losing = serve(1.4, 1.3, 1000, seed);
    CHECK(losing.drafted > 0);
    // What one step with drafts may lose, at most: 1.4 - 0.5 * 1.3.
    CHECK(losing.tokens >= 0.985 * losing.seconds - 0.75);
  }
}

TEST_CASE("drafts pay that give more tokens a second by a twentieth", "[speculation]") {
  constexpr Goodput plain{.tokens = 2.0, .seconds = 4.0};
  static_assert(!pays({.tokens = 1.04, .seconds = 2.0}, plain) && pays({.tokens = 1.06, .seconds = 2.0}, plain));
  static_assert(pays({.tokens = 0.1, .seconds = 0.0}, plain));  // a row that costs nothing
  static_assert(!pays({.tokens = 3.0, .seconds = 0.0}, {.tokens = 1.0, .seconds = 0.0}));  // nothing is measured yet
}

TEST_CASE("drafts that gain are made in nearly all steps", "[speculation]") {
  int drafted = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) drafted += serve(1.4, 2.0, 1000, seed).drafted;
  CHECK(drafted > 20 * 900);
}

TEST_CASE("the first steps of a width have no drafts, and one now and then", "[speculation]") {
  DraftLedger ledger({.widths = 4, .plain = 3});
  for (const std::size_t rows : {1u, 4u}) {
    for (int i = 0; i < 3; ++i) CHECK(!ledger.may_draft(rows));
    int plain = 0;
    for (int i = 0; i < 480; ++i) plain += ledger.may_draft(rows) ? 0 : 1;
    CHECK(plain == 10);
  }
  CHECK(ledger.may_draft(100));  // as of 4
}

}  // namespace test_draft_economy
