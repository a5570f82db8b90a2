// Which tokens stay within a budget, as numbers alone.
#include <algorithm>
#include <random>

#include "catch.hpp"
#include "kv/token_choice.hpp"

namespace test_token_choice {

using tessera::kv::Keep;
using tessera::kv::TokenRun;
using tessera::kv::tokens_to_drop;
using Runs = std::vector<TokenRun>;

TEST_CASE("nothing goes of a sequence within its budget", "[token-budget]") {
  const std::vector<std::uint64_t> votes(10, 1);
  CHECK(tokens_to_drop(10, votes, {.tokens = 10, .sinks = 2, .recent = 4}).empty());
  CHECK(tokens_to_drop(10, {}, {.tokens = 11}).empty());
  CHECK(tokens_to_drop(0, {}, {.tokens = 0}).empty());
}

TEST_CASE("without votes the first and the last tokens stay", "[token-budget]") {
  CHECK(tokens_to_drop(100, {}, {.tokens = 20, .sinks = 4}) == Runs{{4, 84}});
  CHECK(tokens_to_drop(100, {}, {.tokens = 20, .sinks = 0}) == Runs{{0, 80}});
  CHECK(tokens_to_drop(100, {}, {.tokens = 20, .sinks = 30}) == Runs{{20, 100}});
}

TEST_CASE("the tokens with the most votes stay, with their neighbours", "[token-budget]") {
  const std::vector<std::uint64_t> votes{9, 0, 0, 5, 0, 0, 0, 2, 0, 0, 1, 0};
  CHECK(tokens_to_drop(12, votes, {.tokens = 8, .sinks = 1, .recent = 2, .pooled = 2}) == Runs{{6, 10}});
  CHECK(tokens_to_drop(12, votes, {.tokens = 5, .sinks = 1, .recent = 2, .pooled = 0}) == Runs{{1, 3}, {4, 7}, {8, 10}});
  // Votes for what stays anyway count for nobody else.
  CHECK(tokens_to_drop(12, votes, {.tokens = 4, .sinks = 1, .recent = 2, .pooled = 0}) == Runs{{1, 3}, {4, 10}});
}

TEST_CASE("among equals the later tokens stay", "[token-budget]") {
  const std::vector<std::uint64_t> none(12, 0);
  CHECK(tokens_to_drop(12, none, {.tokens = 6, .sinks = 1, .recent = 2, .pooled = 3}) == Runs{{1, 7}});
}

TEST_CASE("recent tokens give way where sinks and they are more than stay", "[token-budget]") {
  const std::vector<std::uint64_t> votes(20, 7);
  CHECK(tokens_to_drop(20, votes, {.tokens = 6, .sinks = 2, .recent = 40, .pooled = 0}) == Runs{{2, 16}});
  CHECK(tokens_to_drop(20, votes, {.tokens = 6, .sinks = 40, .recent = 40, .pooled = 0}) == Runs{{6, 20}});
}

TEST_CASE("as many stay as should, for any votes", "[token-budget]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t length = 1 + random() % 90;
    std::vector<std::uint64_t> votes(length);
    for (std::uint64_t& n : votes) n = random() % 5;
    const Keep keep{.tokens = random() % 100, .sinks = random() % 9, .recent = random() % 30, .pooled = random() % 12};
    const Runs runs = tokens_to_drop(length, votes, keep);
    std::uint64_t gone = 0, end = 0;
    std::vector<bool> stays(length, true);
    for (const TokenRun& run : runs) {
      REQUIRE(run.first < run.last);
      REQUIRE((run.first > end || (run.first == 0 && end == 0)));
      REQUIRE(run.last <= length);
      gone += run.last - run.first;
      end = run.last;
      std::fill(stays.begin() + static_cast<std::ptrdiff_t>(run.first), stays.begin() + static_cast<std::ptrdiff_t>(run.last), false);
    }
    CHECK(length - gone == std::min(length, keep.tokens));
    // Nobody who goes has more votes about it than somebody who stays.
    const std::uint64_t sinks = std::min(keep.sinks, keep.tokens), recent = std::min(keep.recent, keep.tokens - sinks);
    std::uint64_t least = ~0ull, most = 0;
    for (std::uint64_t i = sinks; i + recent < length; ++i) {
      std::uint64_t about = 0;
      for (std::uint64_t j = std::max(sinks, i - std::min(i, keep.pooled)); j <= i + keep.pooled && j + recent < length; ++j) {
        about = std::max(about, votes[j]);
      }
      if (stays[i]) least = std::min(least, about);
      else most = std::max(most, about);
    }
    CHECK(most <= least);
  }
}

}  // namespace test_token_choice
