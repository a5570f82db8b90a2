// Each stage that looks at logits only, against a reference that sorts everything and counts in double.
#include "core/math.hpp"
#include "rig.hpp"
#include "sampling/loops.hpp"

#include "catch.hpp"

namespace test_sampling_stages {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

namespace {

const std::size_t kSizes[] = {1, 2, 3, 7, 64, 65, 257, 1000, 50'000};

template <class Body>
void for_each_case(Body body) {
  for (const std::size_t n : kSizes) {
    for (int kind = 0; kind < 5; ++kind) {
      const auto seed = static_cast<std::uint32_t>(n * 7 + static_cast<std::size_t>(kind));
      const auto logits = random_logits(n, kind, seed);
      CAPTURE(n, kind);
      body(logits, naive(logits));
    }
  }
}

// The least n whose probabilities reach p, where rounding cannot decide otherwise: nullopt when it might.
struct Reach {
  std::size_t n;
  bool clear;
};
Reach reach(const std::vector<Naive>& order, double p) {
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += order[i].p;
    if (sum >= p - 1e-6) return {i + 1, sum >= p + 1e-6 || i + 1 == order.size()};
  }
  return {order.size(), true};
}

void check_order_by_token(const std::vector<Candidate>& got) {
  CHECK(std::is_sorted(got.begin(), got.end(), [](const auto& a, const auto& b) { return a.token < b.token; }));
}

}  // namespace

TEST_CASE("softmax agrees with double arithmetic and adds up to 1") {
  for_each_case([](const auto& logits, const auto& want) {
    Rig rig(logits);
    REQUIRE(rig.candidates[0].softmax());
    std::vector<double> p(logits.size());
    const double top = want[0].logit;
    for (const Naive& entry : want) p[static_cast<std::size_t>(entry.token)] = entry.p;
    double sum = 0;
    bool close = true;
    for (const auto& candidate : rig.candidates[0].view()) {
      const double wanted = p[static_cast<std::size_t>(candidate.token)];
      sum += static_cast<double>(candidate.probability);
      // 2 ulp, and what the f32 difference of two logits rounds away.
      const double relative = 3e-7 + 6e-8 * (top - static_cast<double>(candidate.logit));
      close = close && std::abs(static_cast<double>(candidate.probability) - wanted) <= relative * wanted + 1e-37;
    }
    CHECK(close);
    CHECK(sum == Approx(1.0).epsilon(1e-6));
  });
}

TEST_CASE("sort_best brings the best to the front and keeps the others in order") {
  for_each_case([](const auto& logits, const auto& want) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{5}, logits.size() / 2, logits.size()}) {
      Rig rig(logits);
      rig.candidates[0].sort_best(n);
      const auto view = rig.rows();
      REQUIRE(view.size() == want.size());
      const std::size_t front = std::min(n, view.size());
      bool same = true;
      for (std::size_t i = 0; i < front; ++i) same = same && view[i].token == want[i].token;
      CHECK(same);
      const auto rest = std::span(view).subspan(front);
      CHECK(std::is_sorted(rest.begin(), rest.end(), [](const auto& a, const auto& b) { return a.token < b.token; }));
    }
  });
}

TEST_CASE("greedy keeps the best, the lowest token id of equals") {
  for_each_case([](const auto& logits, const auto& want) {
    const auto got = Rig(logits).apply(Greedy{});
    REQUIRE(got.size() == 1);
    CHECK(got[0].token == want[0].token);
  });
  CHECK(Rig({-0.0f, 0.0f}).apply(Greedy{})[0].token == 0);  // the two zeros are equal
}

TEST_CASE("temperature divides; 0 is greedy") {
  for_each_case([](const auto& logits, const auto& want) {
    for (const float t : {0.3f, 1.0f, 2.5f}) {
      bool same = true;
      for (const auto& c : Rig(logits).apply(Temperature{t})) {
        same = same && c.logit == logits[static_cast<std::size_t>(c.token)] / t;
      }
      CHECK(same);
    }
    CHECK(tokens_of(Rig(logits).apply(Temperature{0.0f})) == first_tokens(want, 1));
  });
}

TEST_CASE("a tiny temperature does not make different logits equal") {
  const auto got = Rig({1.0f, 2.0f, -5.0f}).apply(Temperature{1e-40f});
  REQUIRE(got.size() == 3);
  CHECK(got[1].logit == 0.0f);
  CHECK(got[0].logit < -1e30f);
}

TEST_CASE("dynamic temperature follows the entropy") {
  for_each_case([](const auto& logits, const auto& want) {
    if (want.size() < 2) return;
    double entropy = 0;
    for (const Naive& entry : want) entropy -= entry.p > 0 ? entry.p * std::log(entry.p) : 0.0;
    const double share = std::min(1.0, entropy / std::log(static_cast<double>(want.size())));
    const double t = 0.4 + (1.6 - 0.4) * std::pow(share, 1.5);
    bool close = true;
    for (const auto& c : Rig(logits).apply(DynamicTemperature{{.low = 0.4f, .high = 1.6f, .exponent = 1.5f}})) {
      const double wanted = static_cast<double>(logits[static_cast<std::size_t>(c.token)]) / t;
      close = close && std::abs(static_cast<double>(c.logit) - wanted) <= 1e-5 * std::abs(wanted) + 1e-9;
    }
    CHECK(close);
  });
}

TEST_CASE("top-k keeps exactly the k best, in order") {
  for_each_case([](const auto& logits, const auto& want) {
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{40}, std::size_t{999}}) {
      const auto got = Rig(logits).apply(TopK{k});
      CHECK(tokens_of(got) == first_tokens(want, k == 0 ? want.size() : k));
      check_order_by_token(got);
    }
  });
}

TEST_CASE("top-p keeps the smallest set that reaches p") {
  std::size_t clear = 0;
  for_each_case([&](const auto& logits, const auto& want) {
    for (const float p : {0.01f, 0.3f, 0.5f, 0.9f, 0.95f, 0.999f}) {
      const Reach n = reach(want, static_cast<double>(p));
      if (!n.clear) continue;
      ++clear;
      CHECK(tokens_of(Rig(logits).apply(TopP{p})) == first_tokens(want, n.n));
      CHECK(tokens_of(Rig(logits).apply(TopP{p, 100})) == first_tokens(want, std::max<std::size_t>(n.n, 100)));
    }
    CHECK(Rig(logits).apply(TopP{1.0f}).size() == want.size());
  });
  CHECK(clear > 200);
}

TEST_CASE("top-p does not depend on where the likely tokens are") {
  constexpr std::size_t kSize = 16 * 4096 + 5;
  const auto bell = random_logits(kSize, 0, 3);
  auto sorted = bell, comb = bell, spike = random_logits(kSize, 3, 5);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < kSize; ++i) comb[i] = i % 16 == 0 ? bell[i] + 4.0f : bell[i] - 4.0f;  // where a sample may look
  for (std::size_t i = 0; i < kSize; i += 1021) spike[i] += 9.0f;
  std::size_t clear = 0;
  for (const auto& logits : {sorted, comb, spike}) {
    const auto want = naive(logits);
    for (const float p : {0.05f, 0.5f, 0.8f, 0.95f, 0.9999f}) {
      const Reach n = reach(want, static_cast<double>(p));
      if (!n.clear) continue;
      ++clear;
      CAPTURE(p);
      CHECK(tokens_of(Rig(logits).apply(TopP{p})) == first_tokens(want, n.n));
    }
  }
  CHECK(clear > 3);
}

TEST_CASE("weights have the bits of exp, and their sum those of four running sums") {
  for (const std::size_t n : kSizes) {
    const auto logits = random_logits(n, static_cast<int>(n % 5), 11);
    const float top = *std::max_element(logits.begin(), logits.end());
    std::vector<float> weights(n);
    const double sum = loops::weigh(logits.data(), n, top, weights.data());
    double sums[4] = {};
    std::size_t same = 0;
    for (std::size_t i = 0; i < n; ++i) {
      same += weights[i] == math::exp(logits[i] - top) ? 1 : 0;
      sums[i % 4] += static_cast<double>(weights[i]);
    }
    CHECK(same == n);
    CHECK(sum == (sums[0] + sums[1]) + (sums[2] + sums[3]));
    CHECK(loops::sum(weights.data(), n) == sum);
  }
}

TEST_CASE("min-p keeps what is at least p times as likely as the best") {
  for_each_case([](const auto& logits, const auto& want) {
    for (const float p : {0.001f, 0.05f, 0.3f, 1.0f}) {
      std::size_t n = 0;
      bool clear = true;
      for (const Naive& entry : want) {
        const double margin = (entry.logit - want[0].logit) - std::log(static_cast<double>(p));
        clear = clear && (std::abs(margin) > 1e-6 * std::max(1.0, std::abs(want[0].logit)) || p == 1.0f);
        n += margin >= 0 ? 1 : 0;
      }
      if (!clear) continue;
      const auto got = Rig(logits).apply(MinP{p});
      CHECK(tokens_of(got) == first_tokens(want, n));
      check_order_by_token(got);
      CHECK(tokens_of(Rig(logits).apply(MinP{p, 5})) == first_tokens(want, std::max<std::size_t>(n, 5)));
    }
    CHECK(Rig(logits).apply(MinP{0.0f}).size() == want.size());
  });
}

TEST_CASE("typical-p keeps the tokens of the most usual surprise") {
  std::size_t clear = 0;
  for_each_case([&](const auto& logits, const auto& want) {
    double entropy = 0;
    for (const Naive& entry : want) entropy -= entry.p > 0 ? entry.p * std::log(entry.p) : 0.0;
    auto order = want;
    const auto distance = [&](const Naive& entry) {
      const double surprise = -std::log(want[0].p) + (want[0].logit - entry.logit);
      return std::abs(surprise - entropy);
    };
    std::stable_sort(order.begin(), order.end(), [](const Naive& a, const Naive& b) { return a.token < b.token; });
    std::stable_sort(order.begin(), order.end(),
                     [&](const Naive& a, const Naive& b) { return distance(a) < distance(b); });
    for (const float p : {0.2f, 0.5f, 0.95f}) {
      const Reach n = reach(order, static_cast<double>(p));
      // Where the edge of the set is nearly a tie, f32 and double may choose differently.
      const bool tie = n.n < order.size() && std::abs(distance(order[n.n - 1]) - distance(order[n.n])) <
                                                 1e-4 * std::max(1.0, distance(order[n.n]));
      if (!n.clear || tie) continue;
      ++clear;
      Rig rig(logits);
      const auto got = rig.apply(TypicalP{p});
      CHECK(tokens_of(got) == first_tokens(order, n.n));
      bool restored = true;
      for (const auto& c : got) restored = restored && c.logit == logits[static_cast<std::size_t>(c.token)];
      CHECK(restored);
    }
    CHECK(Rig(logits).apply(TypicalP{1.0f}).size() == want.size());
  });
  CHECK(clear > 40);
}

TEST_CASE("top-n-sigma cuts n standard deviations below the best") {
  for_each_case([](const auto& logits, const auto& want) {
    double sum = 0, squares = 0;
    for (const Naive& entry : want) sum += entry.logit;
    const double mean = sum / static_cast<double>(want.size());
    for (const Naive& entry : want) squares += (entry.logit - mean) * (entry.logit - mean);
    const double sigma = std::sqrt(squares / static_cast<double>(want.size()));
    for (const float n : {0.5f, 1.0f, 3.0f}) {
      std::size_t kept = 0;
      for (const Naive& entry : want) kept += entry.logit >= want[0].logit - static_cast<double>(n) * sigma ? 1 : 0;
      const auto got = Rig(logits).apply(TopNSigma{n});
      CHECK(tokens_of(got) == first_tokens(want, kept));
      check_order_by_token(got);
    }
  });
}

TEST_CASE("allow and deny lists and logit bias") {
  const std::vector<float> logits = {0, 1, 2, 3, 4, 5};
  const std::vector<Token> list = {4, 1, 1, 99};
  Rig rig(logits);
  const auto allow = TokenList::make(TokenList::Kind::allow, list);
  REQUIRE(allow);
  CHECK(tokens_of(rig.apply(*allow)) == std::vector<Token>{1, 4});
  CHECK(std::all_of(rig.counts.begin(), rig.counts.end(), [](auto count) { return count == 0; }));
  const auto deny = TokenList::make(TokenList::Kind::deny, list);
  REQUIRE(deny);
  CHECK(tokens_of(Rig(logits).apply(*deny)) == std::vector<Token>{0, 2, 3, 5});

  const std::vector<TokenBias> biases = {{3, 0.5f}, {0, -kInf}, {3, 0.25f}, {5, kInf}, {100, 1.0f}};
  const auto bias = LogitBias::make(biases);
  REQUIRE(bias);
  const auto got = Rig(logits).apply(*bias);
  CHECK(got[0].logit == -kInf);
  CHECK(got[1].logit == 1.0f);
  CHECK(got[3].logit == 3.75f);
  CHECK(got[5].logit == kInf);

  CHECK_FALSE(LogitBias::make(std::vector<TokenBias>{{1, kNaN}}));
  CHECK_FALSE(LogitBias::make(std::vector<TokenBias>{{1, kInf}, {1, -kInf}}));
  CHECK_FALSE(LogitBias::make(std::vector<TokenBias>{{-1, 0.0f}}));
  CHECK_FALSE(TokenList::make(TokenList::Kind::deny, std::vector<Token>{-3}));
}

}  // namespace test_sampling_stages
