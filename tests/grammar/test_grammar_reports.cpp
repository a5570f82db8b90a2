// What users of other libraries reported of schemas, patterns and grammars: each is right here.
#include "grammar_rig.hpp"

#include <fmt/format.h>

namespace test_grammar_reports {

using namespace grammar_rig;

namespace {

const GrammarVocabulary& bytes() {
  static const GrammarVocabulary v = vocabulary();
  return v;
}
bool schema_accepts(std::string_view schema, std::string_view text) { return accepts(compiled(Grammar::json_schema(schema), bytes()), text); }
bool rules_accept(std::string_view rules, std::string_view text) { return accepts(compiled(Grammar::ebnf(rules), bytes()), text); }

}  // namespace

TEST_CASE("schemas that others had trouble with") {
  // A pattern without anchors (llama.cpp 26930).
  CHECK(schema_accepts(R"({"type":"string","pattern":"\\S"})", R"(" a ")"));
  CHECK_FALSE(schema_accepts(R"({"type":"string","pattern":"\\S"})", R"("   ")"));
  // No properties; large counts (llama.cpp 25923, 25746).
  CHECK(schema_accepts(R"({"type":"object","properties":{}})", "{}"));
  CHECK(schema_accepts(R"({"type":"object","properties":{}})", "{ }"));
  const std::string large = R"({"type":"object","properties":{"s":{"type":"string","maxLength":10000},"l":{"type":"array","items":{"type":"integer"},"maxItems":10000}}})";
  CHECK(schema_accepts(large, R"({"s":"x","l":[1,2]})"));
  CHECK(schema_accepts(fmt::format(R"({{"anyOf":[{{"type":"object","properties":{{"a":{0}}},"required":["a"]}},{0}]}})", large), R"({"a":{"s":"x","l":[1,2]}})"));
  // Pattern and length at once (xgrammar 895).
  const std::string_view both = R"({"type":"object","properties":{"k":{"type":"string","pattern":"^[a-z]+$","maxLength":3}},"required":["k"]})";
  CHECK(schema_accepts(both, R"({"k":"abc"})"));
  CHECK_FALSE(schema_accepts(both, R"({"k":"abcd"})"));
  // anyOf of required beside properties (xgrammar 858).
  const std::string_view any = R"({"type":"object","properties":{"modifier":{"type":"string"},"target":{"type":"string"}},"additionalProperties":false,"anyOf":[{"required":["modifier"]},{"required":["target"]}]})";
  CHECK(schema_accepts(any, R"({"modifier":"x"})"));
  CHECK_FALSE(schema_accepts(any, "{}"));
  CHECK_FALSE(schema_accepts(any, R"({"zzz":1})"));
  // pydantic's Decimal (pydantic 13017).
  const std::string_view decimal = R"({"type":"object","properties":{"amount":{"anyOf":[{"type":"number"},{"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}]}},"required":["amount"]})";
  CHECK(schema_accepts(decimal, R"({"amount":"12.50"})"));
  CHECK(schema_accepts(decimal, R"({"amount":12.5})"));
  CHECK_FALSE(schema_accepts(decimal, R"({"amount":"-."})"));
  // Control characters (xgrammar 636, 286).
  const std::string_view control = R"({"type":"object","properties":{"a\u0001b":{"type":"integer"}},"required":["a\u0001b"]})";
  CHECK(schema_accepts(control, R"({"a\u0001b":1})"));
  CHECK_FALSE(schema_accepts(control, "{\"a\x01" "b\":1}"));
  CHECK_FALSE(schema_accepts(R"({"type":"object","properties":{"text":{"type":"string"}}})", "{\"text\":\"a\tb\"}"));
  // Bounds beyond 2^53 and 2^63 (llama.cpp 16626, sourcemeta 235).
  const std::string_view zod = R"({"type":"object","properties":{"n":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991}},"required":["n"]})";
  CHECK(schema_accepts(zod, R"({"n":9007199254740991})"));
  CHECK_FALSE(schema_accepts(zod, R"({"n":9007199254740992})"));
  CHECK_FALSE(schema_accepts(zod, R"({"n":0})"));
  const std::string_view wide = R"({"type":"integer","minimum":-9223372036854775808,"exclusiveMaximum":9223372036854776000})";
  CHECK(schema_accepts(wide, "9223372036854775999"));
  CHECK_FALSE(schema_accepts(wide, "9223372036854776000"));
  // allOf of references is the intersection (llama.cpp 15830).
  const std::string_view all = R"({"allOf":[{"$ref":"#/definitions/f"},{"$ref":"#/definitions/b"}],"definitions":{"f":{"enum":["a","b"]},"b":{"enum":["b","c"]}}})";
  CHECK(schema_accepts(all, R"("b")"));
  CHECK_FALSE(schema_accepts(all, R"("a")"));
}

TEST_CASE("patterns and rules that others had trouble with") {
  // A range over scripts (vllm 15210); two quantifiers in a row (vllm 19270).
  const CompiledGrammar range = compiled(Grammar::regex("[\\x00-\\u2e7f]+"), bytes());
  CHECK(accepts(range, "\xC3\x9Cn\xC3\xAF" "code \xE2\x89\xA5 ok"));
  CHECK_FALSE(accepts(range, "\xE6\x97\xA5"));
  const auto twice = Grammar::regex("foo**");
  REQUIRE_FALSE(twice.has_value());
  CHECK_THAT(twice.error().text(), Catch::Matchers::ContainsSubstring("byte 4 "));
  // Empty alternatives and stars of stars (llama.cpp 7572, 18988).
  CHECK(rules_accept("root ::= \"a\" ( \"\" | \"b\" )*", "a"));
  CHECK(rules_accept("root ::= \"a\" ( \"\" | \"b\" )*", "abb"));
  CHECK_FALSE(rules_accept("root ::= \"a\" ( \"\" | \"b\" )*", "ac"));
  CHECK(rules_accept("root ::= ((\"a\"*)*)*", "aaaa"));
  // Recursion to the left (llama.cpp 6492, 3801).
  CHECK(rules_accept("root ::= root \"a\" | \"b\"", "baaa"));
  CHECK_FALSE(rules_accept("root ::= root \"a\" | \"b\"", "ab"));
  CHECK(rules_accept("root ::= e\ne ::= [0-9]+ | e (\"+\"|\"-\") e", "1+2-3"));
  CHECK_FALSE(rules_accept("root ::= e\ne ::= [0-9]+ | e (\"+\"|\"-\") e", "1+"));
  // Nothing but the end behind a finished text (airo 1739, llama.cpp 12597).
  auto matcher = Matcher::create(compiled(Grammar::ebnf("root ::= \"{\" \"}\""), bytes()));
  REQUIRE(matcher.has_value());
  REQUIRE(matcher->accept('{').has_value());
  REQUIRE(matcher->accept('}').has_value());
  CHECK(tokens_of(*matcher->mask()) == std::vector<Token>{end_of(bytes())});
  // Deep groups, long chains (llama.cpp 26600).
  const auto deep = Grammar::ebnf("root ::= " + std::string(60000, '(') + "\"a\"" + std::string(60000, ')'));
  REQUIRE_FALSE(deep.has_value());
  CHECK_THAT(deep.error().text(), Catch::Matchers::ContainsSubstring("line 1"));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i) chain += fmt::format("r{} ::= r{}\n", i, i + 1);
  const auto long_chain = Grammar::ebnf(chain + "r5000 ::= \"a\"\n");
  if (long_chain) CHECK(accepts(compiled(long_chain, bytes()), "a"));
}

}  // namespace test_grammar_reports
