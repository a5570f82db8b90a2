// EBNF: the syntax, llama.cpp's GBNF, recursion of both kinds, errors with their lines; compositions.
#include "grammar_rig.hpp"

namespace test_grammar_ebnf {

using namespace grammar_rig;

namespace {

const GrammarVocabulary& bytes() {
  static const GrammarVocabulary v = vocabulary();
  return v;
}
CompiledGrammar rules(std::string_view text) { return compiled(Grammar::ebnf(text), bytes()); }

std::string error_of(std::string_view text) {
  const auto grammar = Grammar::ebnf(text);
  REQUIRE_FALSE(grammar.has_value());
  return grammar.error().text();
}

}  // namespace

TEST_CASE("GBNF as llama.cpp's own grammars are written") {
  // grammars/arithmetic.gbnf and the shape of grammars/json.gbnf
  const CompiledGrammar arithmetic = rules(R"gbnf(root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf");
  CHECK(accepts(arithmetic, "a+(b*3)=7\n"));
  CHECK(accepts(arithmetic, "((x)) = 1\ny2=z\n"));
  CHECK_FALSE(accepts(arithmetic, "a+=7\n"));
  CHECK_FALSE(accepts(arithmetic, "(a=7\n"));
  const CompiledGrammar json = rules(R"gbnf(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf");
  CHECK(accepts(json, R"({"a": [1, 2.5e3, {"b": "c\u00e9"}], "d": null})"));
  CHECK_FALSE(accepts(json, R"({"a": [1, 2.5e3, }])"));
}

TEST_CASE("Lark's way of writing rules") {
  const CompiledGrammar g = rules(R"gbnf(
// greetings
start: greeting ("," greeting)* END
?greeting: HELLO " " NAME
   | "bye"i
HELLO: /hell+o/i
NAME: /[A-Z][a-z]{1,5}/
END: "!" | "?"
)gbnf");
  CHECK(accepts(g, "HELLLO Bob,bYe!"));
  CHECK_FALSE(accepts(g, "helo Bob!"));
  CHECK_FALSE(accepts(g, "hello bob!"));
}

TEST_CASE("blanks before a quantifier, and long escapes in classes") {
  const CompiledGrammar g = rules("root ::= \"a\" * \"b\" {2} ( \"c\"\n  + ) [x\\U0001F600-\\U0001F64F] ?\nother ::= \"z\"");
  CHECK(accepts(g, "aabbc"));
  CHECK(accepts(g, "bbcc\xF0\x9F\x98\x80"));
  CHECK_FALSE(accepts(g, "abc"));
  CHECK_FALSE(accepts(g, "abbc\xF0\x9F\x99\x90"));
  CHECK_THAT(error_of("root ::= [\\U0011FFFF]"), Catch::Matchers::ContainsSubstring("no character"));
  CHECK_THAT(error_of("root ::= /[\\U0001F600]/"), Catch::Matchers::ContainsSubstring("\\U"));
}

TEST_CASE("recursion to the left, to the right and in the middle costs the same per byte") {
  for (const char* text : {"root ::= root \"a\" | \"a\"", "root ::= \"a\" root | \"a\"", "root ::= \"a\" | x root\nx ::= \"a\" | \"b\" x"}) {
    const CompiledGrammar g = rules(text);
    CHECK(accepts(g, std::string(5000, 'a')));
    CHECK_FALSE(accepts(g, std::string(5000, 'a') + "c"));
  }
  const CompiledGrammar nested = rules("root ::= \"(\" root \")\" | \"\"");
  CHECK(accepts(nested, std::string(3000, '(') + std::string(3000, ')')));
  CHECK_FALSE(accepts(nested, std::string(3000, '(') + std::string(2999, ')')));
}

TEST_CASE("ambiguous and empty rules are no trouble") {
  const CompiledGrammar g = rules("root ::= e e e\ne ::= \"\" | \"a\" e? | (\"b\" e){0,2} | e e");
  CHECK(accepts(g, ""));
  CHECK(accepts(g, "aabba"));
  CHECK_FALSE(accepts(g, "aabbc"));
  CHECK(accepts(rules("root ::= (\"a\"? \"b\"?){2,3} \"c\""), "abac"));
  CHECK_FALSE(accepts(rules("root ::= x{2,3}\nx ::= \"(\" x? \")\""), "()"));
  CHECK(accepts(rules("root ::= x{2,3}\nx ::= \"(\" x? \")\""), "()(())"));
  CHECK_FALSE(accepts(rules("root ::= x{2,3}\nx ::= \"(\" x? \")\""), "()()()()"));
}

TEST_CASE("a wrong grammar is an error with its line") {
  CHECK_THAT(error_of("root ::= \"a\"\nx ::= y\n"), Catch::Matchers::ContainsSubstring("line 2") && Catch::Matchers::ContainsSubstring("'y'"));
  CHECK_THAT(error_of("root ::= \"a\nb\""), Catch::Matchers::ContainsSubstring("line 1"));
  CHECK_THAT(error_of("x ::= \"a\""), Catch::Matchers::ContainsSubstring("root"));
  CHECK_THAT(error_of("root ::= (\"a\""), Catch::Matchers::ContainsSubstring("parenthesis"));
  CHECK_THAT(error_of("root ::= \"a\"\nroot ::= \"b\""), Catch::Matchers::ContainsSubstring("twice"));
  CHECK_THAT(error_of("%import common.WS\nroot ::= \"a\""), Catch::Matchers::ContainsSubstring("%import"));
  CHECK_THAT(error_of("root ::= \"a\"{3,1}"), Catch::Matchers::ContainsSubstring("maximum"));
  CHECK_THAT(error_of(std::string(100000, '(')), Catch::Matchers::ContainsSubstring("line 1"));
  const auto endless = Grammar::ebnf("root ::= \"a\" root");
  REQUIRE(endless.has_value());
  CHECK_FALSE(CompiledGrammar::create(*endless, bytes()).has_value());
}

TEST_CASE("grammars compose: text until a trigger, then a call, or an answer without any") {
  const std::vector<std::string> triggers{"<tool>"};
  const auto call = Grammar::json_schema(R"({"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false})");
  const auto tool = Grammar::sequence({*Grammar::until(triggers), *call, *Grammar::literal("</tool>")});
  const auto all = Grammar::alternatives({*tool, *Grammar::without(triggers)});
  const CompiledGrammar g = compiled(all, bytes());
  CHECK(accepts(g, "I look it up. <tool>{\"x\": 3}</tool>"));
  CHECK(accepts(g, "No tools < needed <too bad"));
  CHECK_FALSE(accepts(g, "I look it up. <tool>{\"x\": \"3\"}</tool>"));
  CHECK_FALSE(accepts(g, "<tool>{\"x\": 3}</tool> and more"));
  const CompiledGrammar twice = compiled(Grammar::repeat(*tool, 1, 2), bytes());
  CHECK(accepts(twice, "a<tool>{\"x\":1}</tool>b<tool>{\"x\":2}</tool>"));
  CHECK_FALSE(accepts(twice, "a<tool>{\"x\":1}</tool>b"));
}

}  // namespace test_grammar_ebnf
