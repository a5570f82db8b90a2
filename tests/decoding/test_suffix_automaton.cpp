// The suffix automaton's guesses, beside a search through the whole sequence.
#include <map>
#include <random>
#include <vector>

#include "decoding/drafters/suffix_automaton.hpp"

#include "catch.hpp"

namespace test_suffix_automaton {

using namespace tessera;
using detail::SuffixAutomaton;

namespace {

// What followed the longest end of the sequence that occurred before, each of its places but the last counted.
std::map<Token, int> followers(const std::vector<Token>& sequence, std::size_t& longest) {
  longest = 0;
  std::map<Token, int> found;
  for (std::size_t end = 1; end < sequence.size(); ++end) {
    std::size_t same = 0;
    while (same < end && sequence[end - 1 - same] == sequence[sequence.size() - 1 - same]) ++same;
    if (same == 0 || same < longest) continue;
    if (same > longest) found.clear();
    longest = same;
    ++found[sequence[end]];
  }
  return found;
}

}  // namespace

TEST_CASE("guesses are what followed the longest repeated end most often", "[speculation]") {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    SuffixAutomaton automaton;
    std::vector<Token> sequence;
    const int letters = 1 + round % 5;
    for (int i = 0; i < 150; ++i) {
      const bool repeats = sequence.size() > 20 && random() % 4 == 0;
      const std::size_t from = repeats ? random() % (sequence.size() - 10) : 0;
      for (int n = 0; n < (repeats ? 5 : 1); ++n) {
        const Token token = repeats ? sequence[from + static_cast<std::size_t>(n)] : static_cast<Token>(random() % static_cast<unsigned>(letters));
        sequence.push_back(token);
        automaton.push(token);
      }
      std::size_t longest = 0;
      const auto expected = followers(sequence, longest);
      Token guess = -1;
      const std::size_t n = automaton.guess(1, 0.0f, {&guess, 1});
      INFO("round " << round << ", " << sequence.size() << " tokens");
      REQUIRE(n == (expected.empty() ? 0 : 1));
      if (n == 0) continue;
      // (Which of several that occurred is counted for each end by itself, the shortest ones perhaps not at all.)
      CHECK(expected.count(guess) == 1);
      CHECK(automaton.guess(longest + 1, 0.0f, {&guess, 1}) == 0);
    }
  }
}

TEST_CASE("of several followers the most frequent one is guessed, with its chance", "[speculation]") {
  SuffixAutomaton automaton;
  for (const Token token : {1, 2, 3, 1, 2, 3, 1, 2, 4, 1, 2}) automaton.push(token);
  std::vector<Token> out(4, -1);
  CHECK(automaton.guess(1, 0.6f, out) >= 1);
  CHECK(out[0] == 3);
  CHECK(automaton.guess(1, 0.7f, out) == 0);  // two of three times
  CHECK(automaton.guess(1, 0.0f, out) == 4);
  CHECK(out == std::vector<Token>{3, 1, 2, 4});  // after 3 1 2 both once: the latest
  automaton.clear();
  CHECK(automaton.guess(1, 0.0f, out) == 0);
}

TEST_CASE("a tree has the likeliest continuations, as many ends as it may", "[speculation]") {
  SuffixAutomaton automaton;
  for (const Token token : {1, 2, 3, 1, 2, 3, 1, 2, 4, 1, 2}) automaton.push(token);
  std::vector<TreeDraft> out(4);
  REQUIRE(automaton.guess_tree(1, 0.0f, 2, out) == 4);
  const auto is = [&](std::size_t i, Token token, std::size_t parent) { return out[i].token == token && out[i].parent == parent; };
  CHECK(is(0, 3, kNoDraft));  // 2 of 3 times, and one is left open
  CHECK(is(1, 1, 0));
  CHECK(is(2, 2, 1));
  CHECK(is(3, 4, kNoDraft));
  REQUIRE(automaton.guess_tree(1, 0.0f, 1, out) == 4);
  CHECK(out[3].parent == 2);
  CHECK(automaton.guess_tree(1, 0.45f, 2, out) == 1);
  CHECK(automaton.guess_tree(3, 0.0f, 2, out) == 0);
  // What has followed the longest end once leaves more open than what follows it often.
  automaton.clear();
  for (const Token token : {5, 6, 7, 6, 8, 6, 8, 5, 6}) automaton.push(token);
  out.resize(8);
  REQUIRE(automaton.guess_tree(1, 0.1f, 3, out) >= 5);
  CHECK(is(0, 7, kNoDraft));
  CHECK(std::ranges::any_of(out, [](const TreeDraft& draft) { return draft.token == 8 && draft.parent == kNoDraft; }));
  automaton.clear();
  CHECK(automaton.guess_tree(1, 0.0f, 2, out) == 0);
}

}  // namespace test_suffix_automaton
