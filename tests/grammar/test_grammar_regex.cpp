// Regular expressions against the standard library's, which is written in another way (backtracking).
// TESSERA_TEST_STRINGS: how many random texts each comparison tries at least.
#include "grammar_rig.hpp"

#include <regex>

namespace test_grammar_regex {

using namespace grammar_rig;

namespace {

// At most two quantifiers within each other: a backtracking matcher takes for ever at more.
std::string random_pattern(std::mt19937& random, int depth, int repeats = 2) {
  static const std::vector<std::string> classes{"[ab]", "[^a]", "[b-d]", "[^b1-3]", "\\d", "\\D", "\\w", "[\\d_]"};
  static const std::vector<std::string> quantifiers{"*", "+", "?", "{1,2}", "{2}", "{0,3}", "{1,}", "*?", "+?", "??", "{1,2}?"};
  const auto part = [&](int fewer = 0) { return random_pattern(random, depth - 1, repeats - fewer); };
  switch (random() % (depth <= 0 ? 4 : repeats > 0 ? 9 : 7)) {
    case 0: return "a";
    case 1: return "b";
    case 2: return classes[random() % classes.size()];
    case 3: return random() % 3 ? "c" : ".";
    case 4: return part() + part();
    case 5: return "(" + part() + "|" + part() + ")";
    case 6: return part() + part() + part();
    default: return (random() % 2 ? "(" : "(?:") + part(1) + ")" + quantifiers[random() % quantifiers.size()];
  }
}

std::string random_text(std::mt19937& random) {
  std::string text;
  for (auto n = random() % 8; n > 0; --n) text += random() % 8 ? "abc"[random() % 3] : "1d_-"[random() % 4];
  return text;
}

bool matches(std::string_view pattern, std::string_view text) {
  static const GrammarVocabulary v = vocabulary();
  return accepts(compiled(Grammar::regex(pattern), v), text);
}

}  // namespace

TEST_CASE("a random pattern matches the texts that std::regex says") {
  std::mt19937 random(7);
  const GrammarVocabulary v = vocabulary();
  std::size_t yes = 0, no = 0;
  const std::uint64_t least = text_count(24'000);
  for (std::uint64_t i = 0; i * 40 < least; ++i) {
    std::string pattern = random_pattern(random, 4);
    if (i % 5 == 0) pattern = std::string(i % 2 ? "(?!" : "(?=") + random_pattern(random, 2) + ")" + pattern;
    const std::regex expected(pattern);
    const auto grammar = Grammar::regex(pattern);
    REQUIRE(grammar.has_value());
    const auto ours = CompiledGrammar::create(*grammar, v);
    for (int k = 0; k < 40; ++k) {
      const std::string text = random_text(random);
      const bool want = std::regex_match(text, expected);
      (want ? yes : no) += 1;
      if (!ours) {  // a pattern that matches nothing is an error
        CHECK_FALSE(want);
        continue;
      }
      INFO(pattern << " on " << text);
      REQUIRE(accepts(*ours, text) == want);
    }
  }
  CHECK(yes > 1000);
  CHECK(no > 1000);
}

TEST_CASE("a schema's pattern is found anywhere in the string unless it is anchored, as std::regex_search finds it") {
  std::mt19937 random(11);
  const GrammarVocabulary v = vocabulary();
  const std::uint64_t least = text_count(12'000);
  for (std::uint64_t i = 0; i * 30 < least; ++i) {
    std::string pattern = random_pattern(random, 3);
    if (random() % 3 == 0) pattern = "^" + pattern;
    if (random() % 3 == 0) pattern += "$";
    if (random() % 5 == 0) pattern = "(^" + random_pattern(random, 1) + "|" + random_pattern(random, 1) + "$)" + (random() % 2 ? "" : "*");
    if (random() % 5 == 0) pattern += "|^" + random_pattern(random, 2) + "$";
    const std::regex expected(pattern);
    std::string quoted;
    for (const char c : pattern) quoted += c == '\\' ? "\\\\" : std::string(1, c);
    const CompiledGrammar ours = compiled(Grammar::json_schema("{\"type\":\"string\",\"pattern\":\"" + quoted + "\"}"), v);
    for (int k = 0; k < 30; ++k) {
      const std::string text = random_text(random);
      INFO(pattern << " on " << text);
      REQUIRE(accepts(ours, "\"" + text + "\"") == std::regex_search(text, expected));
    }
  }
}

TEST_CASE("characters are Unicode's, not bytes") {
  CHECK(matches("^.$", "\xC3\xA9"));
  CHECK(matches("[\\u00e0-\\u00ff]+", "\xC3\xA9\xC3\xA8"));
  CHECK_FALSE(matches("[\\u00e0-\\u00ff]+", "\xC3\x9F\xC3\x9F"));
  CHECK(matches("\\u{1F600}|x", "\xF0\x9F\x98\x80"));
  CHECK(matches("\\ud83d\\ude00", "\xF0\x9F\x98\x80"));
  CHECK_FALSE(matches("..", "\xF0\x9F\x98\x80"));
  CHECK(matches("[^a]", "\xE2\x82\xAC"));
  CHECK_FALSE(matches("[^a]", "\xE2\x82"));
  CHECK(matches("\\s\\S\\w\\W\\d\\D", "\xC2\xA0x_-7y"));
}

TEST_CASE("a pattern that is wrong or not regular says where") {
  const auto error = [](std::string_view pattern) {
    const auto grammar = Grammar::regex(pattern);
    REQUIRE_FALSE(grammar.has_value());
    return grammar.error().text();
  };
  CHECK_THAT(error("a(b"), Catch::Matchers::ContainsSubstring("byte 1 "));
  CHECK_THAT(error("a)b"), Catch::Matchers::ContainsSubstring("byte 1 "));
  CHECK_THAT(error("[a"), Catch::Matchers::ContainsSubstring("bracket"));
  CHECK_THAT(error("[b-a]"), Catch::Matchers::ContainsSubstring("range"));
  CHECK_THAT(error("(a)\\1"), Catch::Matchers::ContainsSubstring("back references"));
  CHECK_THAT(error("\\bword"), Catch::Matchers::ContainsSubstring("\\b"));
  CHECK_THAT(error("(?<=a)b"), Catch::Matchers::ContainsSubstring("group"));
  CHECK_THAT(error("*a"), Catch::Matchers::ContainsSubstring("quantifier"));
  CHECK_THAT(error("a{3,2}"), Catch::Matchers::ContainsSubstring("maximum"));
  CHECK_THAT(error("\xFF"), Catch::Matchers::ContainsSubstring("UTF-8"));
}

}  // namespace test_grammar_regex
