// The semantic cache: who finds whose answers, for how long, and in how much memory.
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "flights.hpp"
#include "semantic_cache.hpp"

#include <thread>

namespace test_semantic_cache {

using namespace gateway;

namespace {

// A vector of length 1 at this angle: the similarity of two is the cosine of the angle between them.
std::vector<float> at_angle(double degrees) {
  const double radians = degrees * 3.14159265358979 / 180;
  return {static_cast<float>(std::cos(radians)), static_cast<float>(std::sin(radians))};
}

Answer plain(const std::string& text) { return {.text = text, .model = "m", .is_plain = true}; }

const CacheKey kAcme = key_of("acme", "model=m");

}  // namespace

TEST_CASE("a question of nearly the same meaning finds the answer; one of another meaning does not", "[gateway]") {
  SemanticCache cache({.threshold = 0.95});
  CHECK_FALSE(cache.find(kAcme, at_angle(0)).hit);
  cache.put(kAcme, "first", at_angle(0), plain("one"));
  cache.put(kAcme, "second", at_angle(30), plain("two"));
  const auto found = cache.find(kAcme, at_angle(10));  // cos 10 = 0.985
  REQUIRE(found.hit);
  CHECK(found.hit->answer.text == "one");
  CHECK(found.hit->question == "first");
  CHECK(found.similarity == Approx(0.9848).margin(1e-3));
  CHECK(cache.find(kAcme, at_angle(25)).hit->answer.text == "two");
  const auto far = cache.find(kAcme, at_angle(90));
  CHECK_FALSE(far.hit);
  CHECK(far.similarity == Approx(0.5).margin(1e-3));
  CHECK(cache.figures().hits == 2);
  CHECK(cache.figures().misses == 2);
  CHECK(cache.figures().similarities.count() == 3);  // the first lookup had nothing to compare with
}

TEST_CASE("no answer crosses tenants or contexts, however alike the questions are", "[gateway]") {
  SemanticCache cache({.threshold = 0.5});
  cache.put(kAcme, "q", at_angle(0), plain("acme's"));
  CHECK_FALSE(cache.find(key_of("other", "model=m"), at_angle(0)).hit);
  CHECK_FALSE(cache.find(key_of("acme", "model=n"), at_angle(0)).hit);
  CHECK_FALSE(cache.find(key_of("", "acmemodel=m"), at_angle(0)).hit);
  CHECK(cache.find(kAcme, at_angle(0)).hit);
  CHECK_FALSE(cache.find(kAcme, std::vector<float>(3, 0.5f)).hit);  // a vector of another encoder
}

TEST_CASE("an answer is found until its time is over", "[gateway]") {
  SemanticCache::Clock::time_point now{};
  SemanticCache cache({.time_to_live = std::chrono::seconds(60)}, [&now] { return now; });
  cache.put(kAcme, "q", at_angle(0), plain("a"));
  now += std::chrono::seconds(59);
  CHECK(cache.find(kAcme, at_angle(0)).hit);
  now += std::chrono::seconds(1);
  CHECK_FALSE(cache.find(kAcme, at_angle(0)).hit);
  CHECK(cache.figures().expired == 1);
  CHECK(cache.figures().entries == 0);
  CHECK(cache.figures().bytes == 0);
}

TEST_CASE("the least recently used answers give way, and memory stays within its limit", "[gateway]") {
  SemanticCache cache({.threshold = 0.999, .bytes = 5000});
  for (int i = 0; i < 20; ++i) {
    cache.put(kAcme, "q" + std::to_string(i), at_angle(i * 10), plain(std::string(500, 'x')));
    REQUIRE(cache.find(kAcme, at_angle(0)).hit);  // used again and again
    CHECK(cache.figures().bytes <= 5000);
  }
  CHECK(cache.figures().evicted > 10);
  CHECK_FALSE(cache.find(kAcme, at_angle(10)).hit);
  cache.put(kAcme, "q0", at_angle(0), plain(std::string(6000, 'x')));  // larger than the cache: not taken, and nothing else goes
  CHECK(cache.find(kAcme, at_angle(0)).hit->answer.text.size() == 500);
}

TEST_CASE("a newer answer to the same text takes the older one's place", "[gateway]") {
  SemanticCache cache({});
  cache.put(kAcme, "q", at_angle(0), plain("old"));
  cache.put(kAcme, "q", at_angle(0), plain("new"));
  cache.put(key_of("other", "model=m"), "q", at_angle(0), plain("other's"));
  CHECK(cache.find(kAcme, at_angle(0)).hit->answer.text == "new");
  CHECK(cache.figures().entries == 2);
  cache.put(kAcme, "broken", std::vector<float>(2, std::numeric_limits<float>::quiet_NaN()), plain("none"));
  CHECK_FALSE(cache.find(kAcme, std::vector<float>(2, std::numeric_limits<float>::quiet_NaN())).hit);
}

TEST_CASE("expired answers are removed a few at each call, and none of them is found", "[gateway]") {
  SemanticCache::Clock::time_point now{};
  SemanticCache cache({.threshold = 0.99, .time_to_live = std::chrono::seconds(60)}, [&now] { return now; });
  constexpr int kOld = 1000;
  for (int i = 0; i < kOld; ++i) cache.put(key_of("tenant " + std::to_string(i % 3), ""), "q" + std::to_string(i), at_angle(i * 0.1), plain("a"));
  now += std::chrono::seconds(61);
  const CacheKey key = key_of("tenant 1", "");
  CHECK_FALSE(cache.find(key, at_angle(0.1)).hit);  // its time is over, removed or not
  const auto removed = cache.figures().expired;
  CHECK(removed > 0);
  CHECK(removed < kOld);  // no call has the work of all
  cache.put(key, "fresh", at_angle(0.1), plain("new"));
  for (int i = 0; i < kOld; ++i) {
    REQUIRE(cache.find(key, at_angle(0.1)).hit->answer.text == "new");
    CHECK(cache.figures().expired <= kOld);
  }
  CHECK(cache.figures().expired == kOld);  // other tenants' too, which nobody asks any more
  CHECK(cache.figures().entries == 1);
}

TEST_CASE("a wrong answer is forgotten", "[gateway]") {
  SemanticCache cache({});
  cache.put(kAcme, "q", at_angle(0), plain("a"));
  const auto found = cache.find(kAcme, at_angle(0));
  cache.forget(found.hit->id);
  cache.forget(found.hit->id);
  CHECK_FALSE(cache.find(kAcme, at_angle(0)).hit);
  CHECK(cache.figures().forgotten == 1);
}

TEST_CASE("identical questions that arrive together are computed once; if the first one fails, the next one computes", "[gateway]") {
  Flights flights;
  auto first = flights.join("q", [] { return false; });
  REQUIRE(first.lead);
  std::atomic<int> answered{0}, led{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      auto joined = flights.join("q", [] { return false; });
      if (joined.answer) answered += joined.answer->text == "a";
      if (!joined.lead) return;
      ++led;
      joined.lead->land(plain("a"));
    });
  }
  CHECK(flights.join("other", [] { return false; }).lead);
  const auto given_up = flights.join("q", [] { return true; });
  CHECK_FALSE(given_up.lead);
  CHECK_FALSE(given_up.answer);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that all four wait
  first.lead.reset();  // fails
  for (std::thread& thread : threads) thread.join();
  CHECK(led >= 1);
  CHECK(answered + led == 4);
}

TEST_CASE("if an answer cannot be shared, those who waited for it compute at the same time", "[gateway]") {
  Flights flights;
  auto first = flights.join("q", [] { return false; });
  std::atomic<int> alone{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto joined = flights.join("q", [] { return false; });
      alone += !joined.lead && !joined.answer;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that all four wait
  first.lead->land(std::nullopt);
  for (std::thread& thread : threads) thread.join();
  CHECK(alone == 4);
}

}  // namespace test_semantic_cache
