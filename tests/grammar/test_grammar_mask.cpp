// Masks against brute force, and walks through what they allow.
#include "grammar_rig.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace test_grammar_mask {

using namespace grammar_rig;

namespace {

const std::vector<std::string> kSchemas{
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},"ab":{"type":"integer"},"z":{"enum":["a","ab",12,null]}},"required":["ab"],"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","pattern":"^[a-z0-9]+$"}},"minProperties":2})",
    R"({"type":"array","items":{"type":["number","string","null"]},"minItems":2,"maxItems":4})",
    R"({"type":"array","prefixItems":[{"const":"ab"},{"type":"boolean"}],"items":{"type":"integer","minimum":-12,"maximum":120,"multipleOf":3}})",
    R"({"$defs":{"n":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"type":"null"}},"additionalProperties":false}},"$ref":"#/$defs/n"})",
    R"({"type":"object","patternProperties":{"^a":{"type":"number","exclusiveMinimum":0},"b$":{"maximum":20}},"additionalProperties":{"type":"boolean"},"maxProperties":3})",
    R"({"oneOf":[{"type":"string","minLength":3},{"type":"object","required":["a"],"properties":{"a":{"const":1}}},{"type":"object","required":["b"],"properties":{"a":{"const":2}}}]})",
    R"({"type":"string","format":"date-time"})",
    R"({"not":{"enum":["a","b",0]},"type":["string","integer"]})",
    R"({"type":"string","pattern":"^(ab|z)*_[A-Z]{1,3}$"})",
    "true"};

std::string random_rules(std::mt19937& random) {
  const std::vector<std::string> atoms{"\"a\"", "\"ab\"", "[a-z0-9]", "[^\"\\\\]", "\"{\"", "\"}\"", "\" \"", "\"\xC3\xA9\"", ".", "x", "y", "root"};
  const auto side = [&] {
    std::string out;
    for (std::size_t alternatives = 1 + random() % 3, i = 0; i < alternatives; ++i) {
      if (i > 0) out += " | ";
      for (auto n = 1 + random() % 3; n > 0; --n) {
        std::string atom = atoms[random() % atoms.size()];
        if (random() % 4 == 0) atom = "(" + atom + " " + atoms[random() % atoms.size()] + ")";
        if (random() % 4 == 0) atom += std::string(1, "*+?"[random() % 3]);
        if (random() % 8 == 0) atom += "{1,3}";
        out += atom + " ";
      }
    }
    return out;
  };
  return "root ::= " + side() + " | \"a\"\nx ::= " + side() + "| \"0\"\ny ::= " + side() + " | \"z\"\n";
}

// Every token, byte by byte.
void check_mask(Matcher& matcher, const GrammarVocabulary& v, const std::string& what) {
  const auto mask = matcher.mask();
  if (!mask) FAIL(what + ": " + mask.error().text());
  const std::vector<std::uint64_t> words(mask->begin(), mask->end());
  for (Token t = 0; t < end_of(v); ++t) {
    const auto one = matcher.check({&t, 1});
    REQUIRE(one.has_value());
    if (has(words, t) != (*one == 1)) FAIL(fmt::format("{}: token {} after {}", what, t, matcher.accepted()));
  }
  CHECK(has(words, end_of(v)) == matcher.may_end());
}

// A walk over what the masks allow never meets an end that it cannot go on from; it ends where a text may.
void walk(const CompiledGrammar& grammar, const GrammarVocabulary& v, std::mt19937& random, const std::string& what) {
  auto matcher = Matcher::create(grammar);
  REQUIRE(matcher.has_value());
  std::string text;
  for (int step = 0; step < 60; ++step) {
    if (step % 3 == 0) check_mask(*matcher, v, what);
    const auto mask = matcher->mask();
    if (!mask) FAIL(what + " after '" + text + "': " + mask.error().text());
    const auto allowed = tokens_of(*mask);
    const Token token = allowed[random() % allowed.size()];
    REQUIRE(matcher->accept(token).has_value());
    if (token == end_of(v)) {
      CHECK(accepts(grammar, text));
      return;
    }
    text += v.bytes(token);
  }
}

}  // namespace

TEST_CASE("masks are what brute force allows, and walks go on: schemas") {
  std::mt19937 random(3);
  for (const std::string& schema : kSchemas) {
    const GrammarVocabulary v = vocabulary(random_texts(random, 300));
    const CompiledGrammar grammar = compiled(Grammar::json_schema(schema), v);
    for (int i = 0; i < 6; ++i) walk(grammar, v, random, schema);
  }
}

TEST_CASE("masks are what brute force allows, and walks go on: random rules") {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const GrammarVocabulary v = vocabulary(random_texts(random, 120));
    const std::string rules = random_rules(random);
    const CompiledGrammar grammar = compiled(Grammar::ebnf(rules), v);
    for (int k = 0; k < 3; ++k) walk(grammar, v, random, rules);
  }
}

TEST_CASE("tokens with the same bytes are allowed together") {
  std::vector<std::string> tokens{"a", "b", "a", "", "a"};
  const Token end = 3;
  const auto v = GrammarVocabulary::create(tokens, {&end, 1});
  const CompiledGrammar grammar = compiled(Grammar::regex("ab?"), *v);
  auto matcher = Matcher::create(grammar);
  CHECK(tokens_of(*matcher->mask()) == std::vector<Token>{0, 2, 4});
  REQUIRE(matcher->accept(4).has_value());
  CHECK(tokens_of(*matcher->mask()) == std::vector<Token>{1, 3});
}

}  // namespace test_grammar_mask
