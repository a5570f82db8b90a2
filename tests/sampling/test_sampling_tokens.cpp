// Every token that a seed has drawn, it draws: over chains, vocabularies and shapes of logits, compared with
// golden/tokens.txt by the tokens and by the bits of the distribution. `test_sampling_tokens "[.record]"` writes the file's
// lines anew: for a change that is meant to be seen in the tokens, and says so.
#include <bit>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>

#include "rig.hpp"

#include "catch.hpp"

namespace test_sampling_tokens {

using namespace tessera;
using namespace tessera::sampling;
using namespace tessera::tests;

namespace {

struct NamedChain {
  const char* name;
  std::function<void(Chain&)> stages;
};

const std::vector<NamedChain>& chains() {
  static const std::vector<NamedChain> list = {
      {"plain", [](Chain&) {}},
      {"greedy", [](Chain& c) { c.greedy(); }},
      {"cold", [](Chain& c) { c.temperature(0.0f); }},
      {"temperature", [](Chain& c) { c.temperature(0.7f); }},
      {"hot", [](Chain& c) { c.temperature(1.7f); }},
      {"top_p", [](Chain& c) { c.top_p(0.9f); }},
      {"nearly_all", [](Chain& c) { c.top_p(0.999999f); }},
      {"hot_top_p", [](Chain& c) { c.temperature(1.3f).top_p(0.95f); }},
      {"cool_top_p", [](Chain& c) { c.temperature(0.8f).top_p(0.5f, 3); }},
      {"top_k", [](Chain& c) { c.top_k(40); }},
      {"wide_top_k", [](Chain& c) { c.top_k(700).temperature(0.9f); }},
      {"usual", [](Chain& c) { c.top_k(40).top_p(0.95f).min_p(0.05f).temperature(0.8f); }},
      {"mass_twice", [](Chain& c) { c.top_p(0.97f).temperature(1.5f).top_p(0.9f, 2); }},
      {"min_p", [](Chain& c) { c.temperature(1.2f).min_p(0.02f, 4); }},
      {"typical", [](Chain& c) { c.typical_p(0.9f); }},
      {"sigma", [](Chain& c) { c.temperature(1.5f).top_n_sigma(1.5f); }},
      {"mirostat", [](Chain& c) { c.mirostat({.tau = 4.0f}); }},
      {"dynamic", [](Chain& c) { c.dynamic_temperature({}).top_p(0.9f); }},
      {"xtc", [](Chain& c) { c.xtc({.probability = 0.7f, .threshold = 0.05f}).top_p(0.98f); }},
      {"history", [](Chain& c) { c.penalties({.repetition = 1.3f, .frequency = 0.2f, .presence = 0.1f}).dry({}).top_p(0.9f); }},
      {"lists", [](Chain& c) { c.deny({1, 2, 3}).logit_bias({{0, 2.0f}, {4, -kInf}}).top_k(9).typical_p(0.8f); }},
  };
  return list;
}

constexpr int kShapes = 10;

std::vector<float> shaped(std::size_t n, int shape, std::uint32_t seed) {
  if (shape < 5) return random_logits(n, shape, seed);
  std::vector<float> logits = random_logits(n, shape == 9 ? 2 : 0, seed);
  for (std::size_t i = 0; i < n; ++i) {
    switch (shape) {
      case 5: logits[i] = 0.25f; break;                              // all alike
      case 6: logits[i] = i % 3 == 1 ? 1.0f : -0.0f; break;          // two values, and a zero with a sign
      case 7: logits[i] = logits[i] * 1e-4f + (i == n / 2 ? 11.0f : 0.0f); break;  // one above a plain
      case 8: logits[i] = logits[i] * 4.0f - 1e4f; break;            // steep, far from 0
      default: break;                                                // half of them impossible
    }
  }
  return logits;
}

class Digest {
 public:
  void add(std::uint32_t word) noexcept {
    for (int byte = 0; byte < 4; ++byte) state_ = (state_ ^ ((word >> (8 * byte)) & 255u)) * 0x100000001b3u;  // FNV-1a
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

// "chain vocabulary shape tokens distribution", the last two as digests.
std::string line_of(const NamedChain& named, std::size_t vocabulary, int shape) {
  const int draws = vocabulary > 100'000 ? 3 : vocabulary > 10'000 ? 12 : 60;
  Digest tokens, distribution;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const auto logits = shaped(vocabulary, shape, static_cast<std::uint32_t>(seed * 31 + static_cast<std::uint64_t>(shape)));
    auto made = chain();
    named.stages(made);
    auto sampler = made.seed(seed, 5).build();
    std::vector<Token> history = {0, 0, 0};
    for (int i = 0; i < draws; ++i) {
      const auto position = static_cast<std::uint64_t>(i);
      const auto token = sampler.sample(logits, history, position);
      tokens.add(token ? static_cast<std::uint32_t>(*token) : ~static_cast<std::uint32_t>(token.error().code()));
      if (!token) continue;
      if (i % 16 == 1) {
        const auto all = sampler.distribution(logits, history, position);
        REQUIRE(all);
        for (const Candidate& candidate : *all) {
          distribution.add(static_cast<std::uint32_t>(candidate.token));
          distribution.add(std::bit_cast<std::uint32_t>(candidate.logit));
          distribution.add(std::bit_cast<std::uint32_t>(candidate.probability));
        }
      }
      REQUIRE(sampler.accept(*token));
      history.push_back(*token);
    }
  }
  std::ostringstream line;
  line << named.name << ' ' << vocabulary << ' ' << shape << ' ' << std::hex << tokens.value() << ' '
       << distribution.value();
  return line.str();
}

template <class Body>
void for_each_line(Body body) {
  for (const std::size_t vocabulary : {1u, 2u, 7u, 300u, 5'003u, 32'000u, 151'936u}) {
    for (std::size_t i = 0; i < chains().size(); ++i) {
      for (int shape = 0; shape < kShapes; ++shape) {
        const std::size_t one_of = vocabulary > 100'000 ? 5 : vocabulary > 10'000 ? 3 : 1;  // the large ones take long
        if ((i + static_cast<std::size_t>(shape)) % one_of != 0) continue;
        body(chains()[i], vocabulary, shape);
      }
    }
  }
}

}  // namespace

TEST_CASE("tokens and distributions are those of the goldens, bit for bit") {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/sampling/golden/tokens.txt");
  std::string wanted;
  std::size_t lines = 0;
  for_each_line([&](const NamedChain& named, std::size_t vocabulary, int shape) {
    REQUIRE(std::getline(file, wanted));
    CHECK(line_of(named, vocabulary, shape) == wanted);
    ++lines;
  });
  CHECK_FALSE(std::getline(file, wanted));
  CHECK(lines > 1100);
}

TEST_CASE("the goldens' lines", "[.record]") {
  for_each_line([](const NamedChain& named, std::size_t vocabulary, int shape) {
    std::cout << line_of(named, vocabulary, shape) << '\n';
  });
}

}  // namespace test_sampling_tokens
