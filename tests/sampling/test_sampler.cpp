// What a Sampler promises as a whole: the draw follows the distribution, repeats by seed and position, and errors are
// values.
#include <stdexcept>

#include "rig.hpp"

#include "sampling/draw.hpp"

#include "catch.hpp"

namespace test_sampler {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

namespace {

ErrorCode code_of(Result<Token> result) { return result ? ErrorCode{} : result.error().code(); }

Token must(Result<Token> result) {
  REQUIRE(result);
  return *result;
}

// Forbids a token for good once it was taken three times.
class ThreeTimes {
 public:
  static constexpr std::string_view kName = "three times";
  void operator()(Candidates& candidates, const Context&) const {
    candidates.remove_if([&](const Candidate& c) { return std::count(taken_.begin(), taken_.end(), c.token) >= 3; });
  }
  void accept(Token token, float) { taken_.push_back(token); }
  void rollback(std::size_t n) { taken_.resize(taken_.size() - n); }

 private:
  std::vector<Token> taken_;
};

class OnlyToken final : public Stage {
 public:
  explicit OnlyToken(Token token) : token_(token) {}
  Status apply(Candidates& candidates, const Context&) override {
    candidates.remove_if([&](const Candidate& c) { return c.token != token_; });
    return {};
  }
  std::unique_ptr<Stage> clone() const override { return std::make_unique<OnlyToken>(*this); }

 private:
  Token token_;
};

}  // namespace

TEST_CASE("the draw follows the distribution") {
  std::vector<float> logits;
  for (int i = 0; i < 20; ++i) logits.push_back(static_cast<float>(i % 7) * 0.4f);
  for (const bool sorted : {false, true}) {
    auto sampler = sorted ? chain().top_p(0.9f).seed(3).build() : chain().temperature(1.3f).seed(3).build();
    const auto distribution = sampler.distribution(logits, {}, 0);
    REQUIRE(distribution);
    std::vector<double> p(logits.size());
    double sum = 0;
    for (const auto& c : *distribution) {
      p[static_cast<std::size_t>(c.token)] = static_cast<double>(c.probability);
      sum += static_cast<double>(c.probability);
    }
    CHECK(sum == Approx(1.0).epsilon(1e-6));
    const std::size_t degrees = distribution->size() - 1;
    const int draws = 100'000;
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) {
      ++counts[static_cast<std::size_t>(must(sampler.sample(logits, {}, static_cast<std::uint64_t>(i))))];
    }
    double chi = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0) REQUIRE(counts[i] == 0);
      if (p[i] > 0) chi += (counts[i] - draws * p[i]) * (counts[i] - draws * p[i]) / (draws * p[i]);
    }
    CAPTURE(sorted, degrees);
    CHECK(chi < static_cast<double>(degrees) + 3.1 * std::sqrt(2.0 * static_cast<double>(degrees)) + 4);  // 99.9 %
  }
}

TEST_CASE("draw never picks a probability of 0") {
  const std::vector<Candidate> distribution = {{0, 0, 0.0f}, {1, 0, 0.5f}, {2, 0, 0.0f}, {3, 0, 0.5f}, {4, 0, 0.0f}};
  CHECK(draw(distribution, 0.0) == 1);
  CHECK(draw(distribution, 0.49) == 1);
  CHECK(draw(distribution, 0.5) == 3);
  CHECK(draw(distribution, 0x1.fffffffffffffp-1) == 3);
}

TEST_CASE("the same token for the same seed and position, in any order of calls") {
  const auto logits = random_logits(1000, 0, 1);
  auto a = chain().temperature(0.8f).top_k(100).top_p(0.95f).seed(42).build();
  auto b = chain().temperature(0.8f).top_k(100).top_p(0.95f).seed(42).build();
  std::vector<Token> forward(50), backward(50);
  for (std::size_t i = 0; i < 50; ++i) forward[i] = must(a.sample(logits, {}, i));
  for (std::size_t i = 50; i-- > 0;) backward[i] = must(b.sample(logits, {}, i));
  CHECK(forward == backward);

  const auto tokens = [&](Sampler& sampler) {
    std::vector<Token> out;
    for (std::size_t i = 0; i < 50; ++i) out.push_back(must(sampler.sample(logits, {}, i)));
    return out;
  };
  auto copy = a.clone();
  REQUIRE(copy);
  CHECK(tokens(*copy) == forward);
  copy->reseed(43);
  CHECK(tokens(*copy) != forward);
  copy->reseed(42, 1);
  CHECK(tokens(*copy) != forward);
  copy->reseed(42);
  CHECK(tokens(*copy) == forward);
  // A stage that does nothing does not shift the random numbers of the draw.
  const auto nothing = [](Candidates&, const Context&) {};
  auto more = chain().stage(nothing).temperature(0.8f).top_k(100).top_p(0.95f).seed(42).build();
  CHECK(tokens(more) == forward);
}

TEST_CASE("the tokens of a fixed seed are the same on every machine") {
  std::vector<float> logits(5000);
  std::uint32_t state = 1;
  for (float& logit : logits) {
    state = state * 1664525u + 1013904223u;
    logit = static_cast<float>(state >> 8) * 0x1p-20f;  // exact in any arithmetic
  }
  std::vector<Token> history;
  auto sampler = chain()
                     .penalties({.repetition = 1.1f, .frequency = 0.1f, .last_n = 64})
                     .dry({.allowed_length = 1})
                     .dynamic_temperature({.low = 0.5f, .high = 1.5f})
                     .top_n_sigma(3.0f)
                     .typical_p(0.98f)
                     .min_p(0.001f)
                     .top_p(0.97f)
                     .xtc({.probability = 0.5f, .threshold = 0.01f})
                     .mirostat({.tau = 5.0f})
                     .seed(2024)
                     .build();
  std::uint64_t bits = 14695981039346656037u;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto distribution = sampler.distribution(logits, history, i);
    REQUIRE(distribution);
    for (const auto& c : *distribution) {
      bits = (bits ^ static_cast<std::uint32_t>(c.token)) * 1099511628211u;
      bits = (bits ^ std::bit_cast<std::uint32_t>(c.probability)) * 1099511628211u;
    }
    history.push_back(must(sampler.sample(logits, history, i)));
    REQUIRE(sampler.accept(history.back()));
  }
  CHECK(std::vector<Token>(history.begin(), history.begin() + 8) ==
        std::vector<Token>{3071, 1382, 2910, 3397, 68, 2109, 4804, 759});
  CHECK(bits == 1004530637510611994u);
}

TEST_CASE("stages apply in the order in which they are written") {
  const std::vector<float> logits = {3, 2, 1, 0};
  auto deny_last = chain().top_k(2).deny({0}).build();
  CHECK(deny_last.distribution(logits, {}, 0)->size() == 1);
  auto deny_first = chain().deny({0}).top_k(2).build();
  CHECK(deny_first.distribution(logits, {}, 0)->size() == 2);
}

TEST_CASE("greedy, a vocabulary of one, +inf and extreme logits") {
  auto greedy = chain().greedy().build();
  CHECK(must(greedy.sample(std::vector<float>{1, 5, 5, -kInf}, {}, 0)) == 1);
  CHECK(greedy.distribution(std::vector<float>{1, 5, 5}, {}, 0)->front().probability == 1.0f);
  auto cold = chain().temperature(0.0f).build();
  CHECK(must(cold.sample(std::vector<float>{1, 5, 5}, {}, 9)) == 1);
  auto plain = chain().build();
  CHECK(must(plain.sample(std::vector<float>{-3}, {}, 0)) == 0);
  const auto infinite = plain.distribution(std::vector<float>{1, kInf, 3e38f, kInf}, {}, 0);
  REQUIRE(infinite);
  REQUIRE(infinite->size() == 2);
  CHECK((*infinite)[0].token == 1);
  CHECK((*infinite)[0].probability == 0.5f);
  CHECK(must(plain.sample(std::vector<float>{-3e38f, 3e38f}, {}, 0)) == 1);
  auto all = chain().temperature(0.5f).top_n_sigma(1).typical_p(0.9f).min_p(0.1f).top_p(0.9f).mirostat({}).build();
  for (const auto& logits : {std::vector<float>{kInf, 1, kInf}, {3e38f, -3e38f, 0}, {-3e38f, -3.1e38f}, {1e-40f, 0}}) {
    CHECK(all.sample(logits, {}, 0));
  }
}

TEST_CASE("logits that cannot be drawn from give an error that says why") {
  auto sampler = chain().temperature(0.8f).top_k(5).top_p(0.9f).build();
  const auto nan = sampler.sample(std::vector<float>{1, kNaN, 2}, {}, 0);
  REQUIRE_FALSE(nan);
  CHECK(nan.error().code() == ErrorCode::numeric);
  CHECK(nan.error().message().find("token 1 is NaN") != std::string::npos);
  const auto none = sampler.sample(std::vector<float>{-kInf, -kInf}, {}, 0);
  REQUIRE_FALSE(none);
  CHECK(none.error().code() == ErrorCode::numeric);
  CHECK(none.error().message().find("-inf") != std::string::npos);
  CHECK(code_of(sampler.sample({}, {}, 0)) == ErrorCode::invalid_argument);
  CHECK(sampler.sample(std::vector<float>{1, 2}, {}, 0));  // and it goes on

  auto denied = chain().deny({0, 1}).build();
  const auto nothing = denied.sample(std::vector<float>{1, 2}, {}, 0);
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code() == ErrorCode::numeric);
  CHECK(nothing.error().message().find("stage 1 of the sampler (token list) left no token") != std::string::npos);
  CHECK(must(denied.sample(std::vector<float>{1, 2, 3}, {}, 0)) == 2);

  auto masked = chain().logit_bias({{0, -kInf}}).build();
  CHECK(code_of(masked.sample(std::vector<float>{1}, {}, 0)) == ErrorCode::numeric);
  auto broken = chain().stage([](Candidates& c, const Context&) { c.change_logits()[0] = kNaN; }).top_p(0.5f).build();
  CHECK(code_of(broken.sample(std::vector<float>{1, 2}, {}, 0)) == ErrorCode::numeric);
}

TEST_CASE("an invalid option is an error of every call") {
  const auto invalid = [](Chain made) {
    auto sampler = made.top_k(3).build();
    const Status status = sampler.status();
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == ErrorCode::invalid_argument);
    CHECK(code_of(sampler.sample(std::vector<float>{1, 2}, {}, 0)) == ErrorCode::invalid_argument);
    CHECK_FALSE(sampler.accept(0));
    CHECK_FALSE(sampler.rollback(0));
    CHECK_FALSE(sampler.clone());
    CHECK_FALSE(sampler.distribution(std::vector<float>{1, 2}, {}, 0));
  };
  for (const float bad : {-0.1f, kNaN, kInf}) {
    invalid(chain().temperature(bad));
    invalid(chain().top_p(bad));
    invalid(chain().min_p(bad));
    invalid(chain().typical_p(bad));
    invalid(chain().top_n_sigma(bad));
    invalid(chain().dynamic_temperature({.low = bad, .high = bad}));
    invalid(chain().dynamic_temperature({.exponent = bad}));
    invalid(chain().penalties({.repetition = bad}));
    invalid(chain().xtc({.probability = bad}));
    invalid(chain().xtc({.threshold = bad}));
    invalid(chain().dry({.multiplier = bad}));
    invalid(chain().dry({.base = bad}));
    invalid(chain().mirostat({.tau = bad}));
    invalid(chain().mirostat({.eta = bad}));
  }
  invalid(chain().top_p(0.0f));
  invalid(chain().top_p(1.01f));
  invalid(chain().penalties({.frequency = kNaN}));
  invalid(chain().penalties({.presence = kInf}));
  invalid(chain().dynamic_temperature({.low = 2.0f, .high = 1.0f}));
  invalid(chain().logit_bias({{2, kNaN}}));
  invalid(chain().deny({-1}));
  auto first = chain().temperature(-1.0f).top_p(7.0f).build();
  CHECK(first.status().error().message() == "temperature is -1: it must be a number of at least 0");
}

TEST_CASE("an empty handle reports itself") {
  auto sampler = chain().build();
  auto taken = std::move(sampler);
  CHECK(taken.status());
  CHECK(code_of(sampler.sample(std::vector<float>{1}, {}, 0)) == ErrorCode::invalid_state);
  sampler.reseed(1);
  auto twice = chain();
  (void)twice.build();
  CHECK(twice.top_k(1).seed(3).build().status().error().code() == ErrorCode::invalid_state);
}

TEST_CASE("stages of one's own: lambdas and classes") {
  const std::vector<float> logits = {1, 2, 3, 4};
  const auto odd = [](const Candidate& candidate) { return candidate.token % 2 != 0; };
  auto even = chain().stage([&](Candidates& c, const Context&) { c.remove_if(odd); }).greedy().build();
  CHECK(must(even.sample(logits, {}, 0)) == 2);

  auto refused = chain().stage([](Candidates&, const Context& context) -> Status {
    if (context.position > 5) return Error(ErrorCode::cancelled, "enough");
    return {};
  }).build();
  CHECK(refused.sample(logits, {}, 5));
  CHECK(code_of(refused.sample(logits, {}, 6)) == ErrorCode::cancelled);

  auto three = chain().stage(ThreeTimes{}).greedy().build();
  std::vector<Token> drawn;
  for (std::uint64_t i = 0; i < 5; ++i) {
    drawn.push_back(must(three.sample(logits, {}, i)));
    REQUIRE(three.accept(drawn.back()));
  }
  CHECK(drawn == std::vector<Token>{3, 3, 3, 2, 2});
  auto copy = three.clone();
  REQUIRE(copy);
  REQUIRE(three.rollback(4));
  CHECK(must(three.sample(logits, {}, 1)) == 3);
  CHECK(must(copy->sample(logits, {}, 5)) == 2);

  auto owned = chain().stage(std::make_unique<OnlyToken>(1)).build();
  CHECK(must(owned.sample(logits, {}, 0)) == 1);
  CHECK(must(owned.clone()->sample(logits, {}, 0)) == 1);
}

TEST_CASE("a stage that throws is an error, and the sampler goes on") {
  auto sampler = chain().stage([](Candidates& c, const Context& context) {
    c.counts()[0] = 5;
    if (context.position == 1) throw std::runtime_error("no");
    if (context.position == 2) throw 7;
    c.counts()[0] = 0;
  }).penalties({.presence = 100.0f}).greedy().build();
  const std::vector<float> logits = {2, 1};
  CHECK(must(sampler.sample(logits, {}, 0)) == 0);
  const auto thrown = sampler.sample(logits, {}, 1);
  REQUIRE_FALSE(thrown);
  CHECK(thrown.error().code() == ErrorCode::callback_failed);
  CHECK(thrown.error().message() == "no");
  CHECK(code_of(sampler.sample(logits, {}, 2)) == ErrorCode::callback_failed);
  CHECK(must(sampler.sample(logits, {}, 0)) == 0);  // the counts that it left behind are gone

  struct Refuses {
    void operator()(Candidates&, const Context&) const {}
    Status accept(Token token, float) const {
      if (token == 1) throw std::runtime_error("not 1");
      return {};
    }
  };
  auto stateful = chain().mirostat({}).stage(ThreeTimes{}).stage(Refuses{}).build();
  REQUIRE(stateful.accept(0));
  const auto refused = stateful.accept(1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == ErrorCode::callback_failed);
  REQUIRE(stateful.rollback(1));
  CHECK_FALSE(stateful.rollback(1));
}

TEST_CASE("suppressed tokens are as if they were denied first, whatever the chain") {
  std::vector<float> logits;
  for (int i = 0; i < 40; ++i) logits.push_back(static_cast<float>(i * 7 % 11) * 0.3f);
  const std::vector<Token> suppressed = {31, 7, 31, -1, 40, 1 << 30};  // in any order; others than the vocabulary's say nothing
  const std::vector<Token> listed = {7, 31};
  const auto chains = std::vector<Chain (*)(Chain)>{[](Chain c) { return c; }, [](Chain c) { return std::move(c).greedy(); },
                                                    [](Chain c) { return std::move(c).temperature(0.7f).top_k(5); },
                                                    [](Chain c) { return std::move(c).top_p(0.5f).min_p(0.1f); },
                                                    [](Chain c) { return std::move(c).penalties({.repetition = 1.5f}); }};
  for (const auto& make : chains) {
    Sampler plain = make(chain()).seed(5).build(), without = make(chain().deny(listed)).seed(5).build();
    Sampler fresh = make(chain()).seed(5).build();
    for (std::uint64_t at = 0; at < 50; ++at) {
      const Token token = must(plain.sample(logits, listed, at, suppressed));
      CHECK(token == must(without.sample(logits, listed, at)));
      CHECK((token != 7 && token != 31));
      CHECK(must(plain.sample(logits, listed, at)) == must(fresh.sample(logits, listed, at)));  // it remembers none of them
    }
    const auto left = plain.distribution(logits, listed, 0, suppressed);
    REQUIRE(left);
    CHECK(std::ranges::none_of(*left, [](const Candidate& c) { return c.token == 7 || c.token == 31; }));
  }
  Sampler sampler = chain().build();
  CHECK(code_of(sampler.sample(std::vector<float>{1, 2}, {}, 0, std::vector<Token>{0, 1})) == ErrorCode::numeric);
  CHECK(must(sampler.sample(std::vector<float>{1, 2}, {}, 0, std::vector<Token>{0})) == 1);
}

}  // namespace test_sampler
