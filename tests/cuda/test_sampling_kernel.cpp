// Tokens drawn by the kernel are those that the host's Sampler draws, whatever the threads, their order and the
// neighbours; where rounding decides, either side of the border is right.
#include <emulator/launch.hpp>

#include <cmath>
#include <random>
#include <vector>

#include <tessera/sampling/chain.hpp>

#include "catch.hpp"
#include "cuda/kernels/sampling.hpp"
#include "sampling/rig.hpp"
#include "sampling/sampler_of.hpp"
#include "sanitized.hpp"

namespace test_sampling_kernel {

using namespace tessera;
using backend::SampleRow;
using cuda::SampleResult;
using cuda::SampleStatus;
using tests::kInf;
using tests::kNaN;

namespace {

constexpr double kBorder = 1e-6;  // of the total: what f32 probabilities and their sums may be off by

SampleSteps recipe_of(sampling::Chain& chain) {
  const auto recipe = chain.build().recipe();
  REQUIRE(recipe);
  return recipe->steps;
}

// logits: [rows, vocab]
std::vector<SampleResult> run(const std::vector<float>& logits, std::size_t vocab, const std::vector<SampleRow>& rows,
                              unsigned threads = 64) {
  std::vector<SampleResult> results(rows.size(), SampleResult{-7, SampleStatus::nothing});
  emulator::launch("sample_tokens", {static_cast<unsigned>(rows.size())}, threads, 0,
                   cuda::SampleArgs{logits.data(), rows.data(), results.data(), static_cast<std::uint32_t>(vocab)});
  return results;
}

struct Left {
  std::uint32_t token;
  float logit;
};

// The chain said plainly: a list that is sorted, masses in long double.
class Plain {
 public:
  Plain(const std::vector<float>& logits, const SampleSteps& steps, double uniform) : steps_(steps), uniform_(uniform) {
    for (std::uint32_t i = 0; i < logits.size(); ++i) {
      if (logits[i] != -kInf) all_.push_back({i, logits[i]});
    }
  }

  // Whether some p and uniform number within kBorder of those asked for give the token.
  bool may_draw(Token token) const { return may_draw(0, all_, static_cast<std::uint32_t>(token)); }

 private:
  static long double mass(float logit, float top) {
    if (top == kInf) return logit == kInf ? 1.0L : 0.0L;
    return std::exp(static_cast<long double>(logit) - static_cast<long double>(top));
  }

  bool may_draw(std::uint32_t at, std::vector<Left> left, std::uint32_t token) const {
    std::stable_sort(left.begin(), left.end(), [](const Left& a, const Left& b) {
      return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
    });
    if (at == steps_.size) return may_be_drawn(left, token);
    const SampleStep& step = steps_.list[at];
    const auto first = [&](std::size_t n) {
      const auto end = left.begin() + static_cast<std::ptrdiff_t>(std::min(n, left.size()));
      return may_draw(at + 1, std::vector<Left>(left.begin(), end), token);
    };
    switch (step.kind) {
      case SampleStepKind::greedy: return first(1);
      case SampleStepKind::top_k: return first(step.count == 0 ? left.size() : step.count);
      case SampleStepKind::temperature: {
        if (step.value == 0.0f) return first(1);
        const float top = left[0].logit;
        const float shift = std::isfinite(top) && !std::isfinite(top / step.value) ? top : 0.0f;
        for (Left& one : left) one.logit = (one.logit - shift) / step.value;
        return first(left.size());
      }
      case SampleStepKind::top_p: break;
    }
    if (step.value >= 1.0f) return first(left.size());
    long double total = 0, reached = 0;
    for (const Left& one : left) total += mass(one.logit, left[0].logit);
    bool found = false;
    const auto p = static_cast<long double>(step.value);
    for (std::size_t n = 1; n <= left.size() && !found; ++n) {
      const bool enough_before = reached >= (p + kBorder) * total;
      if (enough_before && n > step.count) break;
      reached += mass(left[n - 1].logit, left[0].logit);
      const bool enough = reached >= (p - kBorder) * total;
      if ((enough && n >= step.count) || n == left.size()) found = first(n);
    }
    return found;
  }

  bool may_be_drawn(std::vector<Left> left, std::uint32_t token) const {
    const float top = left[0].logit;
    std::sort(left.begin(), left.end(), [](const Left& a, const Left& b) { return a.token < b.token; });
    long double total = 0, before = 0;
    for (const Left& one : left) total += mass(one.logit, top);
    for (const Left& one : left) {
      const long double its = mass(one.logit, top);
      if (one.token == token) {
        return its > 0 && before / total <= uniform_ + kBorder && (before + its) / total >= uniform_ - kBorder;
      }
      before += its;
    }
    return false;
  }

  SampleSteps steps_;
  double uniform_;
  std::vector<Left> all_;
};

class Cases {
 public:
  explicit Cases(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  SampleSteps steps() {
    auto made = sampling::chain();
    const std::size_t n = below(5);
    for (std::size_t i = 0; i < n; ++i) {
      switch (below(8)) {
        case 0: made.greedy(); break;
        case 1:
        case 2:
          made.temperature(one_of({0.0f, 1e-42f, 1e-6f, 0.1f, 0.7f, 0.8f, 1.0f, 1.3f, 5.0f, 1e6f, 1e38f}));
          break;
        case 3:
        case 4:
        case 5: made.top_k(one_of<std::size_t>({0, 1, 2, 3, 7, 40, 300, 4999, 100'000})); break;
        default:
          made.top_p(one_of({1e-45f, 1e-6f, 0.1f, 0.5f, 0.9f, 0.95f, 0.99f, 0.9999f, 0.9999999f, 1.0f}),
                     one_of<std::size_t>({0, 1, 1, 1, 2, 10, 100'000}));
      }
    }
    return recipe_of(made);
  }

  std::vector<float> logits(std::size_t vocab) {
    auto made = tests::random_logits(vocab, static_cast<int>(below(5)), static_cast<std::uint32_t>(random_()));
    const auto set_some = [&](float value) {
      for (std::size_t i = below(4) + 1; i-- > 0;) made[below(vocab)] = value;
    };
    switch (below(8)) {
      case 0: set_some(kInf); break;
      case 1: set_some(std::numeric_limits<float>::max()); break;
      case 2: set_some(std::numeric_limits<float>::lowest()); break;
      case 3: std::fill(made.begin(), made.end(), made[0] == -kInf ? 0.0f : made[0]); break;
      case 4:
        set_some(-0.0f);
        set_some(0.0f);
        break;
      default: break;
    }
    return made;
  }

 private:
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("four logits in, a token out") {
  const std::vector<float> logits{1, 4, 3, 2};
  auto greedy = sampling::chain(), two = sampling::chain();
  greedy.greedy();
  two.top_k(2);  // tokens 1 and 2, with shares of 0.73 and 0.27
  CHECK(run(logits, 4, {{0, recipe_of(greedy), 0.99}})[0].token == 1);
  const SampleSteps best_two = recipe_of(two);
  CHECK(run(logits, 4, {{0, best_two, 0.7}})[0].token == 1);
  CHECK(run(logits, 4, {{0, best_two, 0.8}})[0].token == 2);
}

TEST_CASE("the kernel draws the tokens that the sampler draws") {
  Cases cases(1);
  std::size_t draws = 0, other = 0;
  for (int i = 0; i < (tests::kSanitized ? 300 : 3000); ++i) {
    const std::size_t vocab = cases.one_of<std::size_t>({1, 2, 3, 31, 32, 33, 100, 1024, 1025, 1 + cases.below(5000)});
    const auto logits = cases.logits(vocab);
    const auto steps = cases.steps();
    auto sampler = tests::sampler_of(steps, static_cast<std::uint64_t>(i));
    const auto recipe = sampler.recipe();
    REQUIRE(recipe);
    std::vector<SampleRow> rows;
    for (std::uint64_t position = 0; position < 3; ++position) rows.push_back({0, steps, recipe->uniform(position)});
    rows.push_back({0, steps, 0.0});
    rows.push_back({0, steps, 0x1.fffffffffffffp-1});
    const auto results = run(logits, vocab, rows);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      CAPTURE(i, j, vocab, steps.size, rows[j].uniform, results[j].token);
      REQUIRE(results[j].status == SampleStatus::ok);
      const bool is_position = j < 3;
      const auto token = is_position ? sampler.sample(logits, {}, j) : Result<Token>(-1);
      REQUIRE(token);
      draws += is_position ? 1 : 0;
      if (*token == results[j].token) continue;
      other += is_position ? 1 : 0;
      CAPTURE(*token);
      REQUIRE(Plain(logits, steps, rows[j].uniform).may_draw(results[j].token));
    }
  }
  CAPTURE(draws, other);
  CHECK(other * 200 < draws);
}

TEST_CASE("greedy takes the lowest of the best tokens") {
  std::vector<float> logits(3000, -2.0f);
  for (const std::size_t at : {2999, 1700, 1234}) logits[at] = 0.003f;
  auto greedy = sampling::chain();
  greedy.greedy();
  CHECK(run(logits, 3000, {{0, recipe_of(greedy), 0.9}})[0].token == 1234);
  auto made = sampling::chain();
  made.temperature(1e38f).top_k(1);  // the quotients of neighbours are one denormal
  const auto hot = recipe_of(made);
  logits[5] = std::nextafter(0.003f, 0.0f);
  const auto token = run(logits, 3000, {{0, hot, 0.9}})[0].token;
  CHECK(token == 5);
  CHECK(token == *tests::sampler_of(hot).sample(logits, {}, 0));
}

TEST_CASE("a share that is reached exactly needs no more tokens") {
  auto made = sampling::chain();
  made.top_p(0.5f);
  const auto half = recipe_of(made);
  CHECK(run({1.0f, 1.0f}, 2, {{0, half, 0.99}})[0].token == 0);
  CHECK(run({1.0f, 1.0f, 1.0f}, 3, {{0, half, 0.99}})[0].token == 1);
}

TEST_CASE("the draws follow the distribution") {
  std::vector<float> logits;
  for (int i = 0; i < 20; ++i) logits.push_back(static_cast<float>(i % 7) * 0.4f);
  auto made = sampling::chain();
  made.temperature(0.9f).top_p(0.9f);
  auto sampler = tests::sampler_of(recipe_of(made), 3);
  const auto recipe = *sampler.recipe();
  const auto distribution = *sampler.distribution(logits, {}, 0);
  std::vector<SampleRow> rows;
  for (std::uint64_t i = 0; i < 5000; ++i) rows.push_back({0, recipe.steps, recipe.uniform(i)});
  std::vector<int> counts(logits.size());
  for (const SampleResult& result : run(logits, logits.size(), rows)) {
    REQUIRE(result.status == SampleStatus::ok);
    ++counts[static_cast<std::size_t>(result.token)];
  }
  double chi = 0;
  int counted = 0;
  for (const auto& c : distribution) {
    const double expected = static_cast<double>(c.probability) * static_cast<double>(rows.size());
    const int count = counts[static_cast<std::size_t>(c.token)];
    chi += (count - expected) * (count - expected) / expected;
    counted += count;
  }
  CHECK(counted == static_cast<int>(rows.size()));
  const auto degrees = static_cast<double>(distribution.size() - 1);
  CHECK(chi < degrees + 3.1 * std::sqrt(2.0 * degrees) + 4);  // 99.9 %
}

TEST_CASE("logits that no token can be drawn from are told as the sampler tells them") {
  auto made = sampling::chain();
  made.temperature(0.8f).top_k(5);
  const auto steps = recipe_of(made);
  auto logits = tests::random_logits(700, 2, 4);
  logits[650] = kNaN;
  logits[333] = -kNaN;
  const auto nan = run(logits, 700, {{0, steps, 0.5}})[0];
  CHECK(nan.status == SampleStatus::nan);
  CHECK(nan.token == 333);
  const std::vector<float> none(700, -kInf);
  CHECK(run(none, 700, {{0, steps, 0.5}})[0].status == SampleStatus::nothing);
  CHECK(run({kNaN}, 1, {{0, {}, 0.5}})[0].status == SampleStatus::nan);
}

TEST_CASE("a draw depends on its own row alone") {
  constexpr std::size_t kVocab = 777;
  Cases cases(9);
  std::vector<float> logits;
  std::vector<SampleRow> rows;
  std::vector<SampleResult> alone;
  for (std::uint32_t row = 0; row < 6; ++row) {
    auto its = tests::random_logits(kVocab, static_cast<int>(row), row);
    if (row == 3) std::fill(its.begin(), its.end(), kNaN);
    rows.push_back({row, cases.steps(), 0.125 * row});
    alone.push_back(run(its, kVocab, {{0, rows[row].steps, rows[row].uniform}})[0]);
    logits.insert(logits.end(), its.begin(), its.end());
  }
  rows.push_back(rows[2]);  // a row may be asked for twice, and in any order
  alone.push_back(alone[2]);
  std::swap(rows[0], rows[4]);
  std::swap(alone[0], alone[4]);
  const auto together = run(logits, kVocab, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(together[i].token == alone[i].token);
    CHECK(together[i].status == alone[i].status);
  }
}

TEST_CASE("neither the number of threads nor their order changes a draw") {
  Cases cases(5);
  for (int i = 0; i < 25; ++i) {
    const std::size_t vocab = 1 + cases.below(6000);
    const auto logits = cases.logits(vocab);
    const std::vector<SampleRow> rows = {{0, cases.steps(), 0.3}, {0, cases.steps(), 0.97}};
    const auto expected = run(logits, vocab, rows);
    for (const unsigned threads : {64u, 96u, 256u, cuda::kSampleThreads}) {
      emulator::set_order(threads == 64u ? 1 : static_cast<std::uint64_t>(i) + 2);
      const auto results = run(logits, vocab, rows, threads);
      emulator::set_order(0);
      CAPTURE(i, threads);
      for (std::size_t j = 0; j < rows.size(); ++j) CHECK(results[j].token == expected[j].token);
    }
  }
}

TEST_CASE("a large vocabulary at once", "[large]") {
  constexpr std::size_t kVocab = 151'936;
  const auto logits = tests::random_logits(kVocab, 0, 77);
  auto made = sampling::chain();
  made.temperature(0.8f).top_k(1000).top_p(0.95f);
  const auto limited = recipe_of(made);
  for (const SampleSteps& steps : {limited, SampleSteps{}}) {
    auto sampler = tests::sampler_of(steps, 21);
    const double uniform = sampler.recipe()->uniform(4);
    const auto result = run(logits, kVocab, {{0, steps, uniform}}, cuda::kSampleThreads)[0];
    REQUIRE(result.status == SampleStatus::ok);
    if (result.token != *sampler.sample(logits, {}, 4)) {
      CHECK(Plain(logits, steps, uniform).may_draw(result.token));
    }
  }
}

TEST_CASE("masses are exact but for half a unit, and those of a vocabulary fit") {
  for (const std::uint32_t vocab : {1u, 2u, 3u, 50'257u, 128'256u, 262'144u, 0x7fffffffu}) {
    const int bits = cuda::mass_bits(vocab);
    const std::uint64_t one = cuda::fixed_point(1.0f, bits);
    CHECK(one == std::uint64_t{1} << bits);
    CHECK(one <= ~std::uint64_t{0} / vocab);
  }
  CHECK(cuda::mass_bits(128'256) == 47);
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const float value = std::exp(-static_cast<float>(random() % 100'000) * 1e-3f);
    const long double exact = static_cast<long double>(value) * 0x1p46L;
    const long double off = static_cast<long double>(cuda::fixed_point(value, 46)) - exact;
    CHECK((off > -0.5L && off <= 0.5L));
  }
  CHECK(cuda::fixed_point(0.0f, 46) == 0);
}

TEST_CASE("targets stay inside the total") {
  const std::uint64_t most = ~std::uint64_t{0};
  CHECK(cuda::share_target(1e-45f, 1) == 0);
  CHECK(cuda::share_target(0.5f, 100) == 49);
  CHECK(cuda::share_target(0.5f, 101) == 50);
  CHECK(cuda::share_target(0x1.fffffep-1f, 7) == 6);
  CHECK(cuda::share_target(0x1.fffffep-1f, most) < most);
  CHECK(cuda::draw_target(0.0, 9) == 0);
  CHECK(cuda::draw_target(0x1.fffffffffffffp-1, 9) == 8);
  CHECK(cuda::draw_target(0x1.fffffffffffffp-1, most) < most);
}

}  // namespace test_sampling_kernel
