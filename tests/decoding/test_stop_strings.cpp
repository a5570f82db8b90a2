// Stop strings: the text ends before them, wherever token borders fall, and nothing that could begin one gets out early.
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "decoding/stop_matcher.hpp"

namespace test_stop_strings {

using tessera::detail::More;
using tessera::detail::StopMatcher;

namespace {

struct Outcome {
  std::string text;
  bool stopped = false;
  std::int32_t which = -1;  // of the stop strings
};

Outcome feed(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto step = matcher.push(pieces[i], i + 1 < pieces.size() ? More::yes : More::no);
    outcome.text += step.text;
    if (step.stopped()) return {outcome.text, true, step.stop};
  }
  return outcome;
}

// The whole text at once: cut at the stop string that is complete first, where it begins.
Outcome expected(const std::string& text, const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  std::string so_far;
  for (const std::string& piece : pieces) {
    so_far += piece;
    for (std::size_t at = 0; at < so_far.size(); ++at) {
      for (std::size_t i = 0; i < stops.size(); ++i) {
        if (!stops[i].empty() && so_far.compare(at, stops[i].size(), stops[i]) == 0) return {so_far.substr(0, at), true, static_cast<std::int32_t>(i)};
      }
    }
  }
  return {text, false};
}

}  // namespace

TEST_CASE("a stop string is found across pieces", "[stop]") {
  CHECK(feed({"ab", "cd", "ef"}, {"de"}).text == "abc");
  CHECK(feed({"a", "b", "c"}, {"abc"}).text.empty());
  CHECK(feed({"aab"}, {"ab"}).text == "a");
  CHECK(feed({"a", "a", "b"}, {"ab"}).text == "a");
  CHECK(feed({"abab", "abc"}, {"ababc"}).text == "ab");
  CHECK_FALSE(feed({"ab"}, {"abc"}).stopped);
  CHECK(feed({"ab"}, {"abc"}).text == "ab");
  CHECK(feed({"xy"}, {""}).text == "xy");
}

TEST_CASE("random texts, cuts and stop strings agree with a search of the whole", "[stop]") {
  std::mt19937 random(11);
  const auto word = [&](std::size_t most) {
    std::string text(random() % (most + 1), ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> pieces, stops;
    std::string text;
    for (std::size_t i = random() % 8; i > 0; --i) text += pieces.emplace_back(word(4));
    for (std::size_t i = random() % 4; i > 0; --i) stops.push_back(word(5));
    const Outcome got = feed(pieces, stops);
    const Outcome want = expected(text, stops, pieces);
    REQUIRE(got.text == want.text);
    REQUIRE(got.stopped == want.stopped);
    REQUIRE(got.which == want.which);
    stopped += got.stopped ? 1 : 0;
  }
  CHECK(stopped > 1000);
}

TEST_CASE("stop strings end nothing in marked stretches, however the text is cut", "[stop]") {
  using tessera::MarkedText;
  const std::vector<MarkedText> marked{{.open = {"<think>"}, .close = {"</think>"}}, {.open = {"<t", "[T]"}, .close = {"[/T]", ">"}}};
  struct Case {
    std::string text, want;
    std::int32_t which = -1;
    bool begins_marked = false;
  };
  const std::vector<std::string> stops{"stop", "think", "<", "x["};
  const std::vector<Case> cases{{"<think>stop</think>ab stop c", "<think>stop</think>ab ", 0},
                                {"stop</think>ab stop", "stop</think>ab ", 0, true},
                                {"stop, think < x[", "stop, think < x[", -1, true},
                                {"a<think>stop</think><think>stop</think>x", "a<think>stop</think><think>stop</think>x"},
                                {"a<b", "a", 2},                      // no marker after all, so that "<" stands there
                                {"a<t stop>b stop", "a<t stop>b ", 0},  // the shorter marker
                                {"x[T]stop[/T]y", "x[T]stop[/T]y"},   // a stop string does not reach into a marker
                                {"x[y", "", 3},
                                {"<think>st", "<think>st"}};
  for (const Case& one : cases) {
    for (std::size_t size = 1; size <= one.text.size(); ++size) {
      for (std::size_t first = 0; first < size; ++first) {
        StopMatcher matcher(stops, marked, one.begins_marked);
        std::string text;
        std::int32_t which = -1;
        for (std::size_t at = 0; at < one.text.size() && which < 0;) {
          const std::size_t n = at == 0 && first > 0 ? first : size;
          const auto step = matcher.push(one.text.substr(at, n), at + n < one.text.size() ? More::yes : More::no);
          text += step.text;
          which = step.stop;
          at += n;
        }
        INFO(one.text << " in pieces of " << size << ", the first of " << first);
        REQUIRE(text == one.want);
        REQUIRE(which == one.which);
      }
    }
  }
}

}  // namespace test_stop_strings
