// Stages that look at the history (penalties, DRY), at chance (XTC), or remember (mirostat).
#include <map>

#include "rig.hpp"

#include "catch.hpp"

namespace test_sampling_history {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

namespace {

std::vector<Token> random_history(std::size_t n, Token vocabulary, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> history(n);
  for (Token& token : history) token = static_cast<Token>(random() % static_cast<std::uint32_t>(vocabulary));
  return history;
}

bool all_zero(const std::vector<std::uint32_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [](auto count) { return count == 0; });
}

// DRY as its author wrote it: for each earlier place of the last token, walk both back while they agree.
std::map<Token, std::size_t> repeats(const std::vector<Token>& history, const std::vector<Token>& breakers) {
  const auto breaks = [&](Token token) { return std::find(breakers.begin(), breakers.end(), token) != breakers.end(); };
  std::map<Token, std::size_t> longest;
  if (history.empty() || breaks(history.back())) return longest;
  for (std::size_t i = 0; i + 1 < history.size(); ++i) {
    if (history[i] != history.back() || breaks(history[i + 1])) continue;
    std::size_t length = 1;
    while (length <= i) {
      const Token previous = history[history.size() - 1 - length];
      if (history[i - length] != previous || breaks(previous)) break;
      ++length;
    }
    longest[history[i + 1]] = std::max(longest[history[i + 1]], length);
  }
  return longest;
}

}  // namespace

TEST_CASE("penalties follow their formulas") {
  const auto logits = random_logits(100, 0, 5);
  for (const std::size_t last_n : {std::size_t{0}, std::size_t{1}, std::size_t{64}, kWholeHistory}) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{10}, std::size_t{300}}) {
      auto history = random_history(length, 100, 9);
      if (length > 5) history[length - 1] = 5000, history[length - 2] = -1;  // tokens that this vocabulary has not
      const PenaltyOptions options{.repetition = 1.3f, .frequency = 0.2f, .presence = 0.5f, .last_n = last_n};
      Rig rig(logits);
      const auto got = rig.apply(Penalties{options}, Context{.history = history});
      CHECK(all_zero(rig.counts));
      const std::size_t n = std::min(last_n, length);
      for (const auto& c : got) {
        const auto count = std::count(history.end() - static_cast<std::ptrdiff_t>(n), history.end(), c.token);
        double wanted = static_cast<double>(logits[static_cast<std::size_t>(c.token)]);
        if (count > 0) {
          wanted = wanted < 0 ? wanted * 1.3 : wanted / 1.3;  // Hugging Face: RepetitionPenaltyLogitsProcessor
          wanted -= static_cast<double>(count) * 0.2 + 0.5;
        }
        REQUIRE(static_cast<double>(c.logit) == Approx(wanted).epsilon(1e-5).margin(1e-5));
      }
    }
  }
}

TEST_CASE("penalties count the answer alone, unless they are told to count the prompt too") {
  const std::vector<Token> sequence = {1, 2, 3, 1, 2, 4, 5};  // 4 and 5 are drawn; 1 and 2 repeat in the prompt
  const std::vector<float> logits(8, 8.0f);
  const auto penalised = [&](auto stage, std::size_t before_answer) {
    std::vector<Token> tokens;
    for (const auto& c : Rig(logits).apply(std::move(stage), Context{.history = sequence, .before_answer = before_answer})) {
      if (c.logit < 8.0f) tokens.push_back(c.token);
    }
    return tokens;
  };
  for (const PenaltyOptions options : {PenaltyOptions{.repetition = 2.0f}, PenaltyOptions{.frequency = 1.0f}, PenaltyOptions{.presence = 1.0f}}) {
    PenaltyOptions both = options, last_three = options;
    both.counted = last_three.counted = Counted::sequence;
    last_three.last_n = 3;
    CHECK(penalised(Penalties{options}, 5) == std::vector<Token>{4, 5});
    CHECK(penalised(Penalties{options}, 0) == std::vector<Token>{1, 2, 3, 4, 5});
    CHECK(penalised(Penalties{options}, 7).empty());
    CHECK(penalised(Penalties{options}, 9).empty());
    CHECK(penalised(Penalties{both}, 5) == std::vector<Token>{1, 2, 3, 4, 5});
    CHECK(penalised(Penalties{last_three}, 5) == std::vector<Token>{2, 4, 5});
  }
  const std::vector<Token> looped = {1, 2, 3, 1, 2};
  const auto penalty = [&](Counted counted, std::size_t before_answer) {
    auto dry = Dry::make({.multiplier = 1.0f, .base = 2.0f, .allowed_length = 1, .counted = counted});
    return 8.0f - Rig(logits).apply(*dry, Context{.history = looped, .before_answer = before_answer})[3].logit;
  };
  CHECK(penalty(Counted::answer, 0) == 2.0f);  // "1 2" came before, and 3 behind it
  CHECK(penalty(Counted::answer, 3) == 0.0f);
  CHECK(penalty(Counted::sequence, 3) == 2.0f);
}

TEST_CASE("a sampler counts as the answer what was drawn since begin_answer(), also of a history that lost tokens") {
  std::vector<std::size_t> answers;
  auto sampler = chain().stage([&](Candidates&, const Context& context) { answers.push_back(context.answer().size()); }).build();
  const std::vector<float> logits(4, 0.0f);
  const std::vector<Token> history = {0, 1, 2, 3, 0, 1};
  const auto draw = [&](Sampler& from, std::size_t size, std::uint64_t position) { REQUIRE(from.sample(logits, std::span(history).first(size), position)); };
  draw(sampler, 6, 6);  // nobody said where the answer begins
  sampler.begin_answer(4);
  draw(sampler, 4, 4);
  draw(sampler, 6, 6);
  draw(sampler, 5, 100);  // a stream that has dropped most of its tokens: all that are left were drawn
  draw(sampler, 6, 7);    // one that has dropped a token of the prompt
  draw(sampler, 2, 2);    // another sequence, which nobody told of
  auto copy = sampler.clone();
  REQUIRE(copy);
  draw(*copy, 6, 6);
  auto told = chain().stage([&](Candidates&, const Context& context) { answers.push_back(context.answer().size()); }).build();
  draw(told, 6, 0);  // nobody said, whatever the positions are
  CHECK(answers == std::vector<std::size_t>{6, 0, 2, 5, 3, 0, 2, 6});
}

TEST_CASE("DRY equals the plain search on random histories") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Token vocabulary = static_cast<Token>(2 + seed % 4);
    const auto history = random_history(seed % 90, vocabulary, seed);
    const std::vector<Token> breakers = seed % 3 == 0 ? std::vector<Token>{1} : std::vector<Token>{};
    const std::size_t allowed = seed % 5;
    auto dry = Dry::make({.multiplier = 0.8f, .base = 1.75f, .allowed_length = allowed, .breakers = breakers});
    REQUIRE(dry);
    const std::vector<float> logits(static_cast<std::size_t>(vocabulary), 2.0f);
    Rig rig(logits);
    const auto got = rig.apply(*dry, Context{.history = history});
    CHECK(all_zero(rig.counts));
    const auto longest = repeats(history, breakers);
    for (const auto& c : got) {
      const auto found = longest.find(c.token);
      double wanted = 2.0;
      if (found != longest.end() && found->second >= allowed) {
        wanted -= 0.8 * std::pow(1.75, static_cast<double>(found->second - allowed));
      }
      CAPTURE(seed, c.token);
      REQUIRE(static_cast<double>(c.logit) == Approx(wanted).epsilon(1e-5).margin(1e-5));
    }
  }
}

TEST_CASE("DRY: a repeat does not reach across a breaker, which is never penalised itself") {
  const std::vector<float> logits(10, 0.0f);
  const std::vector<Token> history = {1, 2, 3, 4, 1, 2, 3};
  const std::vector<Token> breaker = {2};
  const auto penalty = [&](std::span<const Token> breakers, Token token) {
    auto dry = Dry::make({.multiplier = 1.0f, .base = 2.0f, .allowed_length = 1, .breakers = breakers});
    return -Rig(logits).apply(*dry, Context{.history = history})[static_cast<std::size_t>(token)].logit;
  };
  CHECK(penalty({}, 4) == 4.0f);       // "1 2 3" repeats: 2^(3 - 1)
  CHECK(penalty(breaker, 4) == 1.0f);  // "3" alone
  const std::vector<Token> next = {4};
  CHECK(penalty(next, 4) == 0.0f);
  const std::vector<Token> last = {3};
  CHECK(penalty(last, 4) == 0.0f);
}

TEST_CASE("DRY on a long repetition stays finite in time and takes infinite penalties") {
  const std::vector<Token> history(100'000, 3);
  auto dry = Dry::make({});
  const auto got = Rig(std::vector<float>(10, 1.0f)).apply(*dry, Context{.history = history});
  CHECK(got[3].logit == -kInf);
  CHECK(got[4].logit == 1.0f);
}

TEST_CASE("XTC removes all but the least likely top choice") {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.06f), std::log(0.04f)};
  const auto got = [&](XtcOptions options) { return tokens_of(Rig(logits).apply(Xtc{options})); };
  CHECK(got({.probability = 1.0f, .threshold = 0.1f}) == std::vector<Token>{2, 3, 4});
  CHECK(got({.probability = 1.0f, .threshold = 0.25f}) == std::vector<Token>{1, 2, 3, 4});
  CHECK(got({.probability = 1.0f, .threshold = 0.35f}) == std::vector<Token>{0, 1, 2, 3, 4});  // one top choice
  CHECK(got({.probability = 1.0f, .threshold = 0.6f}) == std::vector<Token>{0, 1, 2, 3, 4});
  CHECK(got({.probability = 0.0f, .threshold = 0.1f}) == std::vector<Token>{0, 1, 2, 3, 4});
  CHECK(got({.probability = 1.0f, .threshold = 0.1f, .min_keep = 4}) == std::vector<Token>{0, 1, 2, 3, 4});
  CHECK(tokens_of(Rig({1, 1, 1}).apply(Xtc{{.probability = 1.0f, .threshold = 0.3f}})) == std::vector<Token>{2});
}

TEST_CASE("XTC acts as often as its probability says") {
  const std::vector<float> logits(4, 0.0f);
  int acted = 0;
  for (std::uint64_t position = 0; position < 10'000; ++position) {
    const Context context{.history = {}, .position = position, .seed = 17, .stream = 0, .stage = 3};
    acted += Rig(logits).apply(Xtc{{.probability = 0.3f, .threshold = 0.1f}}, context).size() == 1 ? 1 : 0;
  }
  CHECK(std::abs(acted - 3000) < 150);  // more than three standard deviations
}

TEST_CASE("mirostat cuts at mu and learns from the accepted token") {
  const auto logits = random_logits(500, 0, 21);
  const MirostatOptions options{.tau = 3.0f, .eta = 0.2f};
  Mirostat mirostat(options);
  CHECK(mirostat.mu() == 6.0f);
  const auto want = naive(logits);
  std::size_t n = 0;
  while (n < want.size() && -std::log2(want[n].p) <= 6.0) ++n;
  CHECK(tokens_of(Rig(logits).apply(mirostat)) == first_tokens(want, std::max<std::size_t>(n, 1)));
  REQUIRE(mirostat.accept(0, 0.25f));  // 2 bits
  CHECK(mirostat.mu() == Approx(6.0 - 0.2 * (2.0 - 3.0)));
  REQUIRE(mirostat.accept(0, 0.0f));
  CHECK(mirostat.mu() == Approx(6.2));
  mirostat.rollback(2);
  CHECK(mirostat.mu() == 6.0f);
}

TEST_CASE("mirostat keeps the surprise near its target") {
  auto sampler = chain().mirostat({.tau = 4.0f, .eta = 0.1f}).seed(5).build();
  double surprise = 0;
  const int tokens = 2000;
  for (int i = 0; i < tokens; ++i) {
    const auto logits = random_logits(2000, 0, static_cast<std::uint32_t>(i));
    const auto distribution = sampler.distribution(logits, {}, static_cast<std::uint64_t>(i));
    REQUIRE(distribution);
    const std::vector<Candidate> copy(distribution->begin(), distribution->end());
    const auto token = sampler.sample(logits, {}, static_cast<std::uint64_t>(i));
    REQUIRE(token);
    for (const auto& c : copy) surprise -= c.token == *token ? std::log2(static_cast<double>(c.probability)) : 0.0;
    REQUIRE(sampler.accept(*token));
  }
  CHECK(surprise / tokens == Approx(4.0).margin(0.2));
}

TEST_CASE("mirostat: roll-back replays, and a clone goes on by itself") {
  const auto draw = [](Sampler& sampler, std::uint64_t position) {
    const auto logits = random_logits(300, 0, static_cast<std::uint32_t>(position));
    const auto token = sampler.sample(logits, {}, position);
    REQUIRE(token);
    REQUIRE(sampler.accept(*token));
    return *token;
  };
  auto sampler = chain().temperature(0.9f).mirostat({.tau = 2.0f, .eta = 0.5f}).seed(77).build();
  std::vector<Token> first;
  for (std::uint64_t i = 0; i < 20; ++i) first.push_back(draw(sampler, i));
  auto copy = sampler.clone();
  REQUIRE(copy);
  REQUIRE(sampler.rollback(12));
  REQUIRE(sampler.accept(1));  // a forced token that the last distribution does not know
  REQUIRE(sampler.rollback(1));
  for (std::uint64_t i = 8; i < 20; ++i) CHECK(draw(sampler, i) == first[i]);
  for (std::uint64_t i = 20; i < 40; ++i) CHECK(draw(sampler, i) == draw(*copy, i));
  REQUIRE(copy->rollback(40));
  for (std::uint64_t i = 0; i < 20; ++i) CHECK(draw(*copy, i) == first[i]);
  const auto too_far = sampler.rollback(41);
  REQUIRE_FALSE(too_far);
  CHECK(too_far.error().code() == ErrorCode::invalid_argument);
}

}  // namespace test_sampling_history
