// No allocation per token, and an allocation that fails is an error: counted in our own operator new.
#include "counted_new.hpp"
#include "rig.hpp"

#include "catch.hpp"

namespace test_sampler_memory {

using namespace tessera;
using namespace tessera::tests;

namespace {

Sampler everything() {
  static const std::vector<Token> breakers = {9};
  return sampling::chain()
      .logit_bias({{3, 1.0f}, {7, -1.0f}})
      .deny({11, 12})
      .penalties({.repetition = 1.2f, .last_n = sampling::kWholeHistory})
      .dry({.allowed_length = 1, .breakers = breakers})
      .dynamic_temperature({})
      .temperature(0.9f)
      .top_n_sigma(4.0f)
      .top_k(4000)
      .typical_p(0.99f)
      .min_p(0.0001f)
      .top_p(0.99f)
      .xtc({.probability = 0.5f, .threshold = 0.05f})
      .mirostat({})
      .stage([](sampling::Candidates&, const sampling::Context&) {})
      .seed(1)
      .build();
}

}  // namespace

TEST_CASE("after the first token nothing is allocated") {
  const auto logits = random_logits(20'000, 0, 4);
  auto sampler = everything();
  std::vector<Token> history = {1, 2, 3};
  history.reserve(500);
  std::int64_t after_first = 0;
  bool good = true;
  counted::Scope scope;
  for (std::uint64_t position = 0; position < 200; ++position) {
    const auto token = sampler.sample(logits, history, position);
    good = good && token && sampler.accept(*token);
    if (token) history.push_back(*token);
    if (position == 0) after_first = counted::count;
  }
  scope.stop();
  const std::int64_t at_end = counted::count;
  CHECK(good);
  CHECK(at_end == after_first);
}

TEST_CASE("every allocation may fail, and the sampler works afterwards") {
  const auto logits = random_logits(200, 0, 4);
  const std::vector<Token> history = {1, 2, 1, 2, 1};
  auto reference = everything();
  const auto wanted = reference.sample(logits, history, 5);
  REQUIRE(wanted);

  std::size_t failures = 0;
  for (std::int64_t k = 0; k < 200; ++k) {
    counted::Scope scope(k);
    auto sampler = everything();
    Status built = sampler.status();
    auto token = sampler.sample(logits, history, 5);
    bool accepted = token && sampler.accept(*token);
    auto copy = sampler.clone();
    scope.stop();
    const bool reached = counted::count > k;
    if (!reached) break;
    ++failures;
    CAPTURE(k);
    CHECK((!built || !token || !accepted || !copy));
    if (!built) {
      const ErrorCode code = built.error().code();
      CHECK((code == ErrorCode::out_of_memory || code == ErrorCode::invalid_state));
      continue;
    }
    const auto again = sampler.sample(logits, history, 5);
    REQUIRE(again);
    if (!token) CHECK(token.error().code() == ErrorCode::out_of_memory);
    if (!accepted) CHECK(*again == *wanted);
    CHECK(sampler.clone());
  }
  CHECK(failures > 20);
}

}  // namespace test_sampler_memory
