// Patterns with assertions at every place: a mask has the tokens that accept() takes, and whole texts are judged as a small
// matcher judges them that keeps the set of places where a part may end.
// TESSERA_TEST_STRINGS: how many random texts are tried at least.
#include "grammar_rig.hpp"

#include <functional>

#include <fmt/format.h>

namespace test_grammar_assertions {

using namespace grammar_rig;

namespace {

using Places = std::uint32_t;  // bit i: behind i bytes

// A pattern as it is written, and where a match that begins at a place may end.
struct Part {
  std::string written;
  std::function<Places(const std::string&, unsigned)> ends;
};

Places from_all(const Part& part, const std::string& text, Places places) {
  Places out = 0;
  for (unsigned i = 0; i <= text.size(); ++i) {
    if ((places >> i & 1) != 0) out |= part.ends(text, i);
  }
  return out;
}

Part one_of(const std::string& written, const std::string& bytes) {
  return {written, [=](const std::string& text, unsigned at) {
            return at < text.size() && bytes.find(text[at]) != std::string::npos ? Places{2} << at : Places{0};
          }};
}
Part begin() { return {"^", [](const std::string&, unsigned at) { return at == 0 ? Places{1} : Places{0}; }}; }
Part end() { return {"$", [](const std::string& text, unsigned at) { return at == text.size() ? Places{1} << at : Places{0}; }}; }
Part sequence(const Part& a, const Part& b) {
  return {a.written + b.written, [=](const std::string& text, unsigned at) { return from_all(b, text, a.ends(text, at)); }};
}
Part either(const Part& a, const Part& b) {
  return {a.written + "|" + b.written, [=](const std::string& text, unsigned at) { return a.ends(text, at) | b.ends(text, at); }};
}
Part group(const Part& a) { return {"(" + a.written + ")", a.ends}; }
Part repeat(const Part& a, const std::string& written, unsigned min, unsigned max) {
  return {a.written + written, [=](const std::string& text, unsigned at) {
            Places now = Places{1} << at, out = min == 0 ? now : 0;
            for (unsigned n = 1; n <= max && now != 0; ++n) {
              now = from_all(a, text, now);
              if (n >= min) out |= now;
            }
            return out;
          }};
}
Part ahead(const Part& a, bool positive) {
  return {(positive ? "(?=" : "(?!") + a.written + ")", [=](const std::string& text, unsigned at) {
            return (a.ends(text, at) != 0) == positive ? Places{1} << at : Places{0};
          }};
}

const std::string kBytes = "abc1_-d";

Part random_part(std::mt19937& random, int depth, int repeats) {
  const auto part = [&](int fewer = 0) { return random_part(random, depth - 1, repeats - fewer); };
  switch (random() % (depth <= 0 ? 7 : repeats > 0 ? 13 : 10)) {
    case 0: return one_of("a", "a");
    case 1: return one_of("b", "b");
    case 2: return one_of("[ab]", "ab");
    case 3: return one_of("[^a]", "bc1_-d");
    case 4: return one_of(".", kBytes);
    case 5: return random() % 3 == 0 ? begin() : one_of("c", "c");
    case 6: return random() % 3 == 0 ? end() : one_of("\\d", "1");
    case 7: return sequence(part(), part());
    case 8: return group(either(part(), part()));
    case 9: return sequence(sequence(part(), part()), part());
    default:
      switch (random() % 5) {
        case 0: return repeat(group(part(1)), "*", 0, 20);
        case 1: return repeat(group(part(1)), "+", 1, 20);
        case 2: return repeat(group(part(1)), "?", 0, 1);
        case 3: return repeat(group(part(1)), "{2}", 2, 2);
        default: return repeat(group(part(1)), "{1,3}", 1, 3);
      }
  }
}

Part random_pattern(std::mt19937& random) {
  const auto look = [&] { return ahead(random() % 3 ? random_part(random, 2, 1) : either(random_part(random, 1, 1), random_part(random, 1, 0)), random() % 2 == 0); };
  const auto alternative = [&] {
    Part out = random() % 3 == 0 ? look() : random_part(random, 3, 2);
    for (auto n = random() % 3; n > 0; --n) out = sequence(sequence(out, look()), random_part(random, 2, 1));
    return random() % 4 == 0 ? sequence(begin(), out) : out;
  };
  Part out = alternative();
  for (auto n = random() % 3; n > 0; --n) out = either(out, alternative());
  return out;
}

// Every token in every state of a walk.
void check_masks(const CompiledGrammar& grammar, const GrammarVocabulary& v, std::mt19937& random, const std::string& pattern) {
  auto matcher = Matcher::create(grammar);
  REQUIRE(matcher.has_value());
  for (int step = 0; step < 8; ++step) {
    const auto mask = matcher->mask();
    if (!mask) FAIL(pattern + ": " + mask.error().text());
    const std::vector<std::uint64_t> words(mask->begin(), mask->end());
    std::vector<Token> allowed;
    for (Token t = 0; t <= end_of(v); ++t) {
      Matcher copy = *matcher;
      const bool takes = copy.accept(t).has_value();
      if (has(words, t) != takes) FAIL(fmt::format("{}: token {} after {}: the mask says {}", pattern, t, matcher->accepted(), !takes));
      const std::string_view bytes = v.bytes(t);
      if (takes && !bytes.empty() && bytes.find_first_not_of(kBytes + "\"") == std::string_view::npos) allowed.push_back(t);
    }
    if (allowed.empty()) return;
    REQUIRE(matcher->accept(allowed[random() % allowed.size()]).has_value());
  }
}

}  // namespace

TEST_CASE("patterns with assertions: masks are what accept() takes, and texts match as the parts say") {
  std::mt19937 random(21);
  const GrammarVocabulary v = vocabulary({"ab", "abc", "ba", "cc", "aaa", "bcb", "1a", "a1", "bbbb", "aaaaaaaa", "\xC3\xA9", "zz", "a z", "~~"});
  std::size_t yes = 0, no = 0, refused = 0;
  const std::uint64_t least = text_count(7'000);
  for (std::uint64_t i = 0; i * 20 < least; ++i) {
    const Part pattern = random_pattern(random);
    const bool search = i % 3 == 0;
    std::string quoted;
    for (const char c : pattern.written) quoted += c == '\\' ? "\\\\" : std::string(1, c);
    const auto grammar = search ? Grammar::json_schema("{\"type\":\"string\",\"pattern\":\"" + quoted + "\"}") : Grammar::regex(pattern.written);
    if (!grammar) {
      REQUIRE_THAT(grammar.error().text(), Catch::Matchers::ContainsSubstring("a counted repetition of an anchor"));
      ++refused;
      continue;
    }
    const auto ours = CompiledGrammar::create(*grammar, v);
    for (int k = 0; k < 20; ++k) {
      std::string text;
      for (auto n = random() % 7; n > 0; --n) text += kBytes[random() % (random() % 4 ? 3 : kBytes.size())];
      bool want = false;
      for (unsigned at = 0; at <= (search ? text.size() : 0); ++at) {
        const Places ends = pattern.ends(text, at);
        want = want || (search ? ends != 0 : (ends >> text.size() & 1) != 0);
      }
      (want ? yes : no) += 1;
      INFO(pattern.written << (search ? " in " : " is ") << text);
      if (!ours) {  // a pattern that matches nothing is an error
        REQUIRE_FALSE(want);
      } else {
        REQUIRE(accepts(*ours, search ? "\"" + text + "\"" : text) == want);
      }
    }
    if (ours) check_masks(*ours, v, random, pattern.written);
  }
  CHECK(yes > least / 12);
  CHECK(no > least / 12);
  CHECK(refused < least / 20 / 4);
}

TEST_CASE("a mask has nothing of a reading that cannot end") {
  const GrammarVocabulary v = vocabulary({"xx", "some text"});
  const CompiledGrammar grammar = compiled(Grammar::regex("a|.+(?=b)c"), v);
  auto matcher = Matcher::create(grammar);
  REQUIRE(matcher.has_value());
  CHECK(tokens_of(*matcher->mask()) == std::vector<Token>{'a'});
}

TEST_CASE("^ inside a lookahead holds where the text begins") {
  static const GrammarVocabulary v = vocabulary();
  const auto finds = [](const std::string& pattern, const std::string& text) {
    return accepts(compiled(Grammar::json_schema("{\"type\":\"string\",\"pattern\":\"" + pattern + "\"}"), v), "\"" + text + "\"");
  };
  const std::string decimal = R"(^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$)";  // pydantic's
  CHECK(finds(decimal, "12.50"));
  CHECK(finds(decimal, "-.5"));
  CHECK_FALSE(finds(decimal, "-."));
  CHECK_FALSE(finds(decimal, ""));
  CHECK(finds("(?!^a)a", "ba"));
  CHECK_FALSE(finds("(?!^a)a", "ab"));
  CHECK(finds("(?=^a)a", "ab"));
  CHECK_FALSE(finds("(?=^a)a", "ba"));
  CHECK_FALSE(finds("c|b(?=^a)a", "ba"));
  CHECK(finds("b?(?!^a)a", "ba"));
}

}  // namespace test_grammar_assertions
