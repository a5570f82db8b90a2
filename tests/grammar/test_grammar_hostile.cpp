// Input made to be expensive: an error or an answer, soon, in bounded memory.
#include "grammar_rig.hpp"

#include <ctime>
#include <functional>

#include <fmt/format.h>

#include "counted_new.hpp"

namespace test_grammar_hostile {

using namespace grammar_rig;

namespace {

constexpr std::int64_t kMostAllocations = 4'000'000;  // in 0.1 s there are two million at most

// The one that took longest is told and not judged, as machines differ. What is judged is counted: bytes at once, and allocations.
class Slowest {
 public:
  ~Slowest() {
    if (!name_.empty()) fmt::print("the slowest: {}, {:.3f} s\n", name_, seconds_);
  }
  void see(const std::string& name, std::clock_t since) {
    const double seconds = static_cast<double>(std::clock() - since) / CLOCKS_PER_SEC;
    if (seconds <= seconds_) return;
    seconds_ = seconds;
    name_ = name;
  }

 private:
  std::string name_;
  double seconds_ = 0.0;
};

// Builds, compiles, masks, and walks a little.
void endure(Slowest& slowest, const std::string& what, const std::function<Result<Grammar>()>& make) {
  static const GrammarVocabulary v = [] {
    std::mt19937 random(1);
    return vocabulary(random_texts(random, 2000));
  }();
  INFO(what);
  counted::Scope scope;
  const std::clock_t start = std::clock();
  const auto grammar = make();
  std::string outcome = grammar ? "a grammar" : grammar.error().text();
  if (grammar) {
    const auto compiled = CompiledGrammar::create(*grammar, v);
    if (compiled) {
      auto matcher = Matcher::create(*compiled);
      std::mt19937 random(2);
      for (int step = 0; step < 40; ++step) {
        const auto mask = matcher->mask();
        if (!mask) break;
        const auto allowed = tokens_of(*mask);
        if (!matcher->accept(allowed[random() % allowed.size()])) break;
      }
    } else {
      outcome = compiled.error().text();
    }
  }
  scope.stop();
  slowest.see(what, start);
  INFO(outcome);
  CHECK(counted::count < kMostAllocations);
  CHECK(counted::peak < std::size_t{64} << 20);
}

std::string repeated(std::string_view part, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += part;
  return out;
}

}  // namespace

TEST_CASE("hostile schemas end soon") {
  Slowest slowest;
  const auto schema = [](const std::string& text) { return [text] { return Grammar::json_schema(text); }; };
  endure(slowest, "opening brackets", schema(std::string(60000, '[')));
  endure(slowest, "opening braces", schema(repeated("{\"not\":", 60000)));
  endure(slowest, "nested items", schema(repeated("{\"items\":", 200) + "true" + repeated("}", 200)));
  std::string nest = "{\"type\":\"string\"}";
  for (int i = 0; i < 40; ++i) nest = fmt::format("{{\"oneOf\":[{},{{\"type\":\"array\",\"items\":{}}}]}}", nest, i % 2 ? "true" : "{}");
  endure(slowest, "oneOf nest", schema(nest));
  for (const int n : {900, 3000, 20000}) {
    std::string values;
    for (int i = 0; i < n; ++i) values += fmt::format("{}{{\"a\":{},\"b\":\"x{}\"}}", i == 0 ? "" : ",", i, i);
    endure(slowest, fmt::format("enum of {} objects", n), schema(fmt::format("{{\"enum\":[{}]}}", values)));
  }
  nest = "{\"required\":[\"a\"]}";
  for (int i = 0; i < 12; ++i) nest = fmt::format("{{\"oneOf\":[{},{},{{\"required\":[\"k{}\"]}}]}}", nest, nest, i);
  endure(slowest, "oneOf doubled", schema(nest));
  std::string any = "{\"allOf\":[";
  for (int i = 0; i < 30; ++i) any += fmt::format("{}{{\"anyOf\":[{{\"required\":[\"a{}\"]}},{{\"required\":[\"b{}\"]}}]}}", i ? "," : "", i, i);
  endure(slowest, "2^30 alternatives", schema(any + "]}"));
  endure(slowest, "cycle of references", schema(R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"));
  endure(slowest, "cycle through allOf", schema(R"({"allOf":[{"$ref":"#"}]})"));
  endure(slowest, "no finite value", schema(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"));
  endure(slowest, "deep recursion", schema(R"({"type":"array","items":{"$ref":"#"},"minItems":1000000})"));
  endure(slowest, "huge counts", schema(R"({"type":"string","minLength":900000000})"));
  endure(slowest, "huge pattern counts", schema(R"({"pattern":"^((a{1,1000}){1,1000}){1,1000}$"})"));
  endure(slowest, "exponential pattern", schema(R"({"pattern":"(a|b)*a(a|b){60}$"})"));
  endure(slowest, "nested quantifiers", schema(R"({"pattern":"^(((a*)*)*b)*$"})"));
  endure(slowest, "patterns at odds", schema(R"({"allOf":[{"pattern":"^(aaa)*$"},{"pattern":"^(aaaaa)*$"},{"pattern":"^(aaaaaaa)*$"},{"pattern":"^(a{11})*$"},{"pattern":"^(a{13})+$"},{"not":{"pattern":"^(a{15015})*$"}}]})"));
  endure(slowest, "a number with many digits", schema("{\"minimum\":" + std::string(50000, '9') + "}"));
  endure(slowest, "a number with a large exponent", schema(R"({"minimum":1e999999999,"maximum":-1e-999999999})"));
  endure(slowest, "steps without a common multiple", schema(R"({"allOf":[{"multipleOf":0.999999999999},{"multipleOf":1000000007},{"multipleOf":998244353}]})"));
  std::string wide = "{\"type\":\"object\",\"properties\":{";
  for (int i = 0; i < 3000; ++i) wide += fmt::format("{}\"property{}\":{{\"type\":\"integer\"}}", i ? "," : "", i);
  endure(slowest, "3000 properties", schema(wide + "}}"));
  std::string tools = "{\"anyOf\":[";
  for (int i = 0; i < 128; ++i) {
    tools += fmt::format(R"({}{{"type":"object","properties":{{"name":{{"const":"tool{}"}},"arguments":{{"type":"object","properties":{{"x{}":{{"type":"string"}},"y":{{"type":"array","items":{{"type":"number"}}}}}},"required":["y"]}}}},"required":["name","arguments"],"additionalProperties":false}})", i ? "," : "", i, i);
  }
  endure(slowest, "128 tools", schema(tools + "]}"));
  std::string values = "{\"enum\":[";
  for (int i = 0; i < 5000; ++i) values += fmt::format("{}\"value number {}\"", i ? "," : "", i * 7919);
  endure(slowest, "5000 values", schema(values + "]}"));
  std::string keys = "{\"type\":\"object\",\"patternProperties\":{";
  for (int i = 0; i < 24; ++i) keys += fmt::format("{}\"a.*{}\":{{\"type\":\"integer\"}}", i ? "," : "", static_cast<char>('a' + i));
  endure(slowest, "24 overlapping key patterns", schema(keys + "}}"));
}

TEST_CASE("hostile patterns and rules end soon") {
  Slowest slowest;
  const auto regex = [](const std::string& text) { return [text] { return Grammar::regex(text); }; };
  const auto ebnf = [](const std::string& text) { return [text] { return Grammar::ebnf(text); }; };
  endure(slowest, "groups", regex(std::string(90000, '(')));
  endure(slowest, "alternatives of nothing", regex(std::string(90000, '|')));
  endure(slowest, "optional letters", regex(repeated("a?", 20000)));
  endure(slowest, "exponential", regex("(.*a.{40})&?(.*b.{41})"));
  endure(slowest, "counts in counts", regex("(((a{0,999}){0,999}){0,999}){0,999}"));
  endure(slowest, "lookahead", regex(repeated("(?=.*[a-z]{3}x.*y)", 12) + ".*"));
  endure(slowest, "ambiguous rules", ebnf("root ::= root root | \"a\" | \"\""));
  endure(slowest, "cyclic rules", ebnf("root ::= x\nx ::= y | \"a\"\ny ::= x"));
  endure(slowest, "palindromes", ebnf("root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"\""));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) chain += fmt::format("r{} ::= \"a\" r{} | \"b\" r{}\n", i, i + 1, (i * 7) % 3000);
  endure(slowest, "a chain of rules", ebnf(chain + "r3000 ::= \"c\""));
  endure(slowest, "quantifiers", ebnf("root ::= \"a\"" + std::string(50000, '?')));
}

}  // namespace test_grammar_hostile
