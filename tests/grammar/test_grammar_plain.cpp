// JsonNumbers::plain: what a number may look like when a model writes it, and that it comes to an end.
#include "grammar_rig.hpp"

#include <fmt/format.h>

namespace test_grammar_plain {

using namespace grammar_rig;

namespace {

CompiledGrammar plain(std::string_view schema) {
  static const GrammarVocabulary v = vocabulary();
  return compiled(Grammar::json_schema(schema, {.space = JsonSpace::blank, .numbers = JsonNumbers::plain}), v);
}

bool takes(std::string_view schema, std::string_view text) { return accepts(plain(schema), text); }

// How long a text gets whose writer goes on with `favourites` as long as it may, the first that is allowed.
std::size_t longest(const CompiledGrammar& grammar, std::string_view favourites) {
  auto matcher = Matcher::create(grammar);
  REQUIRE(matcher.has_value());
  for (std::size_t n = 0; n < 3000; ++n) {
    const auto mask = matcher->mask();
    if (!mask) FAIL(mask.error().text());
    Token next = -1;
    for (const char c : favourites) {
      if (next < 0 && has(*mask, static_cast<unsigned char>(c))) next = static_cast<unsigned char>(c);
    }
    if (next < 0) next = tokens_of(*mask).front();
    if (!matcher->accept(next).has_value() || matcher->ended()) return n;
  }
  return 3000;
}

}  // namespace

TEST_CASE("plain numbers: digits that say something") {
  CHECK(takes(R"({"type":"integer"})", "-9007199254740993"));
  CHECK_FALSE(takes(R"({"type":"integer"})", "12345678901234567"));
  CHECK_FALSE(takes(R"({"type":"integer"})", "1.0"));
  CHECK(takes(R"({"type":"number"})", "0.1234567890123456"));
  CHECK(takes(R"({"type":"number"})", "6.02e23"));
  CHECK_FALSE(takes(R"({"type":"number"})", "0.12345678901234567"));
  CHECK_FALSE(takes(R"({"type":"number"})", "1e100"));
  CHECK(takes(R"({"multipleOf":0.01})", "12.34"));
  CHECK_FALSE(takes(R"({"multipleOf":0.01})", "12.340"));
  CHECK(takes("true", "[1.5, {\"a\": -2e-3}]"));
  CHECK_FALSE(takes("true", "[1.00000000000000000000]"));
  CHECK(takes(R"({"enum":[1.50,[1e2]]})", "1.50"));
  CHECK(takes(R"({"enum":[1.50,[1e2]]})", "[1e2]"));
  CHECK_FALSE(takes(R"({"enum":[1.50,[1e2]]})", "1.5"));
  CHECK(takes(R"({"format":"date-time"})", R"("2024-02-29T12:00:00.123456789Z")"));
  CHECK_FALSE(takes(R"({"format":"date-time"})", R"("2024-02-29T12:00:00.1234567890Z")"));
}

TEST_CASE("plain numbers have room for what a schema asks for") {
  CHECK(takes(R"({"type":"integer","minimum":100000000000000000000})", "100000000000000000000"));
  CHECK(takes(R"({"type":"integer","minimum":99999999999999999999})", "100000000000000000000"));
  CHECK(takes(R"({"exclusiveMinimum":0,"exclusiveMaximum":1e-20})", "0.000000000000000000005"));
  CHECK(takes(R"({"const":123456789012345678901234567890})", "123456789012345678901234567890"));
  CHECK(takes(R"({"type":"integer","multipleOf":97})", "970000000000000000000097"));
  CHECK(takes(R"({"type":"number","not":{"const":5}})", "5.5"));
  CHECK_FALSE(takes(R"({"type":"number","not":{"const":5}})", "5.0"));
}

TEST_CASE("a text under a schema with bounds ends, whatever its writer would rather write") {
  for (const std::string_view schema :
       {R"({"type":"integer"})", R"({"type":"number"})", R"({"type":"number","exclusiveMinimum":0,"maximum":99.5})", R"({"type":"integer","multipleOf":7})",
        R"({"type":"number","minimum":-1e-30,"multipleOf":1e-31})", R"({"enum":[1,2.0,3]})", R"({"type":"integer","not":{"enum":[1,2,3]}})", R"({"type":"integer","multipleOf":500,"minimum":0,"maximum":1e6})",
        R"({"type":"array","items":{"type":["number","null"]},"maxItems":3})", R"({"type":"string","format":"time"})", R"({"format":"duration","type":"string"})",
        R"({"type":"object","properties":{"a":{"type":"number"},"b":{"type":"string","maxLength":9}},"additionalProperties":false})"}) {
    const CompiledGrammar grammar = plain(schema);
    for (const std::string_view favourites : {" 0123456789", "9-.eE+ ", "0.-eE \t\n", "e9+", ".0\"", "[{\"a\\: 9"}) {
      INFO(schema << ", " << favourites);
      CHECK(longest(grammar, favourites) < 200);
    }
  }
}

TEST_CASE("a number that has left its bounds is seen at once, however long its step") {
  const std::string_view schema = R"({"type":"integer","multipleOf":997,"minimum":-99700,"maximum":99700})";
  for (const auto& [text, taken] : {std::pair{"99700", true}, {"-99700", true}, {"0", true}, {"99701", false}, {"9999999", false}, {"-100697", false}}) {
    INFO(text);
    CHECK(takes(schema, text) == taken);
  }
}

TEST_CASE("plain numbers are some of all numbers, and all that are short") {
  std::mt19937 random(6);
  static const GrammarVocabulary v = vocabulary();
  for (int i = 0; i < 200; ++i) {
    const int low = static_cast<int>(random() % 4000) - 2000, high = low + static_cast<int>(random() % 500);
    std::string schema = fmt::format(R"({{"type":"{}","minimum":{})", i % 2 ? "number" : "integer", low / 100.0);
    if (i % 3 != 0) schema += fmt::format(R"(,"maximum":{})", high / 100.0 + 1);
    if (i % 4 == 0) schema += fmt::format(R"(,"multipleOf":{})", (1 + static_cast<int>(random() % 300)) / 100.0);
    schema += "}";
    const auto any_grammar = Grammar::json_schema(schema);
    REQUIRE(any_grammar.has_value());
    const auto any = CompiledGrammar::create(*any_grammar, v);
    if (!any) continue;  // no multiple within the bounds
    const CompiledGrammar some = plain(schema);
    for (int k = 0; k < 60; ++k) {
      const std::string number = fmt::format("{}{}.{:02}", random() % 2 ? "-" : "", random() % 30, random() % 100);
      std::string text = number.substr(0, number.size() - (random() % 2 ? 0 : number.ends_with("00") ? 3 : number.ends_with('0') ? 1 : 0));
      if (random() % 8 == 0) text = fmt::format("{}.{}e-{}", 1 + random() % 9, random() % 100, random() % 3);
      INFO(schema << " " << text);
      const bool has_fraction = text.find('.') != std::string::npos;
      if (accepts(some, text)) CHECK(accepts(*any, text));
      if (accepts(*any, text) && !(has_fraction && i % 2 == 0) && !(i % 4 == 0 && text.ends_with('0'))) CHECK(accepts(some, text));
    }
  }
}

}  // namespace test_grammar_plain
