// JSON Schema against what others wrote: the official test suite and MaskBench's instances; and the promises that they do
// not cover.
#include "grammar_rig.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace test_grammar_schema {

using namespace grammar_rig;

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const fs::path kSuites = fs::path(TESSERA_SHARED_DIR) / "json-schema";

struct Tally {
  std::size_t groups = 0, refused = 0, clean = 0, wrong_accepts = 0, wrong_rejects = 0;
  std::vector<std::string> wrong;
};

void judge(const std::string& name, const Json& group, const JsonSchemaOptions& options, Tally& tally) {
  static const GrammarVocabulary v = vocabulary();
  ++tally.groups;
  const auto grammar = Grammar::json_schema(group["schema"].dump(), options);
  const auto made = grammar ? CompiledGrammar::create(*grammar, v) : Result<CompiledGrammar>(grammar.error());
  if (!made) {
    ++tally.refused;
    CHECK_FALSE(made.error().message().empty());
    return;
  }
  bool clean = true;
  for (const Json& test : group["tests"]) {
    const auto ours = made->check(test["data"].dump());
    if (!ours) {  // out of fuel on the way: refused, and told
      CHECK(ours.error().code() == ErrorCode::over_budget);
      ++tally.refused;
      return;
    }
    const bool valid = test["valid"].get<bool>();
    if (ours->accepted == valid) continue;
    clean = false;
    ++(valid ? tally.wrong_rejects : tally.wrong_accepts);
    tally.wrong.push_back(name + ": " + test.value("description", ""));
  }
  tally.clean += clean;
}

void judge_file(const fs::path& path, const JsonSchemaOptions& options, Tally& tally) {
  std::ifstream in(path);
  const Json file = Json::parse(in);
  if (file.is_object()) return judge(path.filename().string(), file, options, tally);
  for (const Json& group : file) judge(path.filename().string() + ": " + group.value("description", ""), group, options, tally);
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool schema_accepts(std::string_view schema, std::string_view text, const JsonSchemaOptions& options = {}) {
  static const GrammarVocabulary v = vocabulary();
  return accepts(compiled(Grammar::json_schema(schema, options), v), text);
}

std::string error_of(std::string_view schema) {
  const auto grammar = Grammar::json_schema(schema);
  REQUIRE_FALSE(grammar.has_value());
  return grammar.error().text();
}

}  // namespace

TEST_CASE("the official test suite: where a schema compiles, every instance is judged rightly") {
  for (const auto& [draft, least] : {std::pair{"draft2020-12", 276u}, {"draft7", 228u}}) {
    const fs::path folder = kSuites / "tests" / draft;
    if (!fs::exists(folder)) return tessera::tests::skip("../shared/json-schema is absent");
    Tally tally;
    for (const fs::path& path : files_of(folder)) judge_file(path, {.formats = JsonFormats::by_draft}, tally);
    INFO(fmt::format("{}: {} groups, {} clean, {} refused; wrong: {}", draft, tally.groups, tally.clean, tally.refused, fmt::join(tally.wrong, "; ")));
    CHECK(tally.wrong_accepts == 0);
    CHECK(tally.wrong_rejects == 0);
    CHECK(tally.clean >= least);
  }
}

TEST_CASE("the official suite's optional tests too, but for what this test's own JSON cannot write and content, which is annotated") {
  for (const char* draft : {"draft2020-12", "draft7"}) {
    const fs::path folder = kSuites / "tests" / draft / "optional";
    if (!fs::exists(folder)) return tessera::tests::skip("../shared/json-schema is absent");
    Tally tally;
    for (const fs::path& path : files_of(folder)) {
      const std::string name = path.filename().string();
      if (name != "bignum.json" && name != "float-overflow.json" && name != "content.json") judge_file(path, {.formats = JsonFormats::by_draft}, tally);
    }
    INFO(fmt::format("{}: wrong: {}", draft, fmt::join(tally.wrong, "; ")));
    CHECK(tally.wrong.empty());
    CHECK(tally.clean >= 20);
  }
}

TEST_CASE("formats, asserted: nothing is accepted that is not one") {
  const fs::path folder = kSuites / "tests/draft2020-12/optional/format";
  if (!fs::exists(folder)) return tessera::tests::skip("../shared/json-schema is absent");
  Tally tally;
  for (const fs::path& path : files_of(folder)) judge_file(path, {.formats = JsonFormats::assertion}, tally);
  INFO(fmt::format("wrong: {}", fmt::join(tally.wrong, "; ")));
  CHECK(tally.wrong_accepts == 0);
  // Refused on purpose: punycode, which cannot be checked by a pattern; leap seconds of other time zones; a quoted address.
  std::erase_if(tally.wrong, [](const std::string& w) { return w.find("A-label") != std::string::npos; });
  CHECK(tally.wrong.size() <= 6);
}

TEST_CASE("MaskBench, every sixth file: no wrong verdict, at least 97 % clean") {
  if (!fs::exists(kSuites / "maskbench")) return tessera::tests::skip("../shared/json-schema is absent");
  const auto files = files_of(kSuites / "maskbench");
  Tally tally;
  for (std::size_t i = 0; i < files.size(); i += 6) judge_file(files[i], {}, tally);
  INFO(fmt::format("wrong: {}", fmt::join(tally.wrong, "; ")));
  CHECK(tally.wrong_accepts == 0);
  CHECK(tally.wrong_rejects == 0);
  CHECK(tally.clean * 100 >= tally.groups * 97);
}

TEST_CASE("random schemas with not, oneOf and if over lists and objects are judged as Python's jsonschema judges them") {
  Tally tally;
  judge_file(fs::path(TESSERA_SOURCE_DIR) / "tests/grammar/golden/combinations.json", {}, tally);
  INFO(fmt::format("wrong: {}", fmt::join(tally.wrong, "; ")));
  CHECK(tally.wrong.empty());
  CHECK(tally.clean == tally.groups);
  CHECK(tally.groups >= 300);
}

TEST_CASE("some item or some member that must be of a kind may be at any place, in any order") {
  const std::string_view some = R"({"type":"object","properties":{"a":{"type":"integer"},"b":true},"required":["b"],"not":{"additionalProperties":{"type":"string"},"properties":{"a":true,"b":true}}})";
  for (const JsonOrder order : {JsonOrder::any, JsonOrder::stated}) {
    CHECK(schema_accepts(some, R"({"b":1,"c":1})", {.order = order}));
    CHECK(schema_accepts(some, R"({"a":1,"b":1,"c":"x","d":null,"e":2})", {.order = order}));
    CHECK_FALSE(schema_accepts(some, R"({"b":1,"c":"x"})", {.order = order}));
    CHECK_FALSE(schema_accepts(some, R"({"a":1,"c":1})", {.order = order}));
  }
  CHECK_FALSE(schema_accepts(some, R"({"b":1,"c":1,"a":1})", {.order = JsonOrder::stated}));
  const std::string_view two = R"({"type":"array","allOf":[{"contains":{"minimum":5}},{"contains":{"multipleOf":2}}],"items":{"type":"integer"}})";
  for (const char* text : {"[6]", "[5,2]", "[2,1,7,1]", "[1,6,3]"}) CHECK(schema_accepts(two, text));
  for (const char* text : {"[]", "[5]", "[2,4]", "[7,\"x\",2]", "[7,9]"}) CHECK_FALSE(schema_accepts(two, text));
}

TEST_CASE("a format is asserted in every draft, unless asked otherwise") {
  const std::string_view zod = R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string","format":"date"})";
  CHECK(schema_accepts(zod, R"("2026-11-27")"));
  CHECK_FALSE(schema_accepts(zod, R"("today")"));
  CHECK(schema_accepts(zod, R"("today")", {.formats = JsonFormats::annotation}));
  CHECK(schema_accepts(zod, R"("today")", {.formats = JsonFormats::by_draft}));
}

TEST_CASE("number ranges and steps are exact") {
  std::mt19937 random(4);
  for (int i = 0; i < 150; ++i) {
    const int low = static_cast<int>(random() % 3000) - 1500, high = low + static_cast<int>(random() % 400);
    const int step = 1 + static_cast<int>(random() % 9);
    const std::string schema = fmt::format(R"({{"type":"number","minimum":{},"exclusiveMaximum":{},"multipleOf":{}}})", low / 100.0, (high + 1) / 100.0, step / 100.0);
    const auto grammar = Grammar::json_schema(schema);
    REQUIRE(grammar.has_value());
    static const GrammarVocabulary v = vocabulary();
    const auto made = CompiledGrammar::create(*grammar, v);
    for (int k = 0; k < 60; ++k) {
      const int n = low - 20 + static_cast<int>(random() % 440);
      const bool want = n >= low && n <= high && n % step == 0;
      const std::string text = fmt::format("{}{}.{:02}{}", n < 0 ? "-" : "", std::abs(n) / 100, std::abs(n) % 100, k % 2 ? "0" : "");
      INFO(schema << " " << text);
      if (!made) {
        CHECK_FALSE(want);
      } else {
        REQUIRE(accepts(*made, text) == want);
      }
    }
  }
}

TEST_CASE("properties come in any order or in the stated one; white space as asked") {
  const std::string_view schema = R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["b"],"additionalProperties":false})";
  CHECK(schema_accepts(schema, R"({"c":null,"b":null,"a":null})"));
  CHECK_FALSE(schema_accepts(schema, R"({"c":null,"a":null})"));
  CHECK_FALSE(schema_accepts(schema, R"({"b":null,"b":null})"));
  CHECK_FALSE(schema_accepts(schema, R"({"c":null,"b":null})", {.order = JsonOrder::stated}));
  CHECK(schema_accepts(schema, R"({"b":null,"c":null})", {.order = JsonOrder::stated}));
  CHECK(schema_accepts(schema, " { \"b\" :\n null } \t"));
  CHECK_FALSE(schema_accepts(schema, "{ \"b\":null}", {.space = JsonSpace::none}));
  CHECK(schema_accepts(schema, "{ \"b\": null}", {.space = JsonSpace::blank}));
  CHECK_FALSE(schema_accepts(schema, "{  \"b\": null}", {.space = JsonSpace::blank}));
  CHECK_FALSE(schema_accepts(schema, "{\n\"b\": null}", {.space = JsonSpace::blank}));
}

TEST_CASE("a name written with escapes does not get round its schema") {
  const std::string_view schema = R"({"properties":{"a":{"type":"integer"}}})";
  CHECK(schema_accepts(schema, R"({"b":"x","\u0062b":1})"));
  CHECK_FALSE(schema_accepts(schema, R"({"\u0061":"x"})"));
  CHECK(schema_accepts(R"({"enum":["\u00e9/"]})", R"("\u00e9\/")"));
  CHECK(schema_accepts(R"({"enum":["\u00e9/"]})", "\"\xC3\xA9/\""));
}

TEST_CASE("what is not supported is an error with keyword and path; lenient lists it") {
  CHECK_THAT(error_of(R"({"properties":{"a":{"type":"array","uniqueItems":true}}})"),
             Catch::Matchers::ContainsSubstring("#/properties/a/uniqueItems") && Catch::Matchers::ContainsSubstring("'uniqueItems'"));
  CHECK_THAT(error_of(R"({"type":"array","contains":{"const":1},"minContains":2})"), Catch::Matchers::ContainsSubstring("#/minContains"));
  CHECK_THAT(error_of(R"({"not":{"uniqueItems":true}})"), Catch::Matchers::ContainsSubstring("#/not"));
  CHECK_THAT(error_of(R"({"$ref":"other.json"})"), Catch::Matchers::ContainsSubstring("other.json"));
  CHECK_THAT(error_of(R"({"$schema":"https://a.org/dialect","minimum":1})"), Catch::Matchers::ContainsSubstring("https://a.org/dialect"));
  CHECK_THAT(error_of(R"({"pattern":"(a)\\1"})"), Catch::Matchers::ContainsSubstring("#/pattern"));
  CHECK_THAT(error_of(R"({"oneOf":[{"not":{"uniqueItems":true}},{"items":{"type":"string"}}]})"), Catch::Matchers::ContainsSubstring("#/oneOf"));
  CHECK_THAT(error_of(R"({"type":"text"})"), Catch::Matchers::ContainsSubstring("'text'"));
  CHECK_THAT(error_of(R"({"minimum":"1"})"), Catch::Matchers::ContainsSubstring("#/minimum"));
  CHECK_THAT(error_of("{\"a\":1,\n\"a\":2}"), Catch::Matchers::ContainsSubstring("line 2, column 1: the key \"a\" stands twice"));
  CHECK_THAT(error_of(R"({"enum":["\ud83d"]})"), Catch::Matchers::ContainsSubstring("half of a surrogate pair"));
  CHECK_THAT(error_of(R"({"dependentRequired":{"a":[1]}})"), Catch::Matchers::ContainsSubstring("#/dependentRequired: the keyword 'dependentRequired' has an item that is not a name"));
  CHECK_THAT(error_of("{\"a\":"), Catch::Matchers::ContainsSubstring("line 1, column 6"));
  const auto lenient = Grammar::json_schema(R"({"type":"array","uniqueItems":true,"items":{"type":"integer"}})", {.unsupported = JsonUnsupported::ignore});
  REQUIRE(lenient.has_value());
  REQUIRE(lenient->ignored().size() == 1);
  CHECK_THAT(lenient->ignored()[0], Catch::Matchers::ContainsSubstring("#/uniqueItems"));
}

TEST_CASE("exponents are compared with bounds: as a double does, where one says the value exactly enough") {
  std::mt19937 random(8);
  static const GrammarVocabulary v = vocabulary();
  for (int i = 0; i < 60; ++i) {
    const double a = (static_cast<int>(random() % 2001) - 1000) / 8.0 * (i % 3 == 0 ? 0.001 : 1.0), b = a + static_cast<double>(random() % 4000) / 16.0;
    const CompiledGrammar g = compiled(Grammar::json_schema(fmt::format(R"({{"type":"number","minimum":{},"exclusiveMaximum":{}}})", a, b + 0.0625)), v);
    for (int k = 0; k < 60; ++k) {
      const std::string text = fmt::format("{}{}{}e{}{}", random() % 2 ? "-" : "", 1 + random() % 9, random() % 2 ? fmt::format(".{}", random() % 1000) : "", random() % 2 ? "-" : "", random() % 5);
      const double x = std::stod(text);
      INFO(text << " in " << a << ", " << b + 0.0625);
      REQUIRE(accepts(g, text) == (x >= a && x < b + 0.0625));
    }
  }
  for (const auto& [bound, text] : {std::pair{"100", "1e2"}, {"100", "1.0e+2"}, {"1200", "1.2e3"}, {"0.05", "5e-2"}, {"-30", "-3e1"}}) {
    INFO(bound << " and " << text);
    CHECK(schema_accepts(fmt::format(R"({{"minimum":{}}})", bound), text));
    CHECK(schema_accepts(fmt::format(R"({{"maximum":{}}})", bound), text));
    CHECK_FALSE(schema_accepts(fmt::format(R"({{"exclusiveMinimum":{}}})", bound), text));
    CHECK_FALSE(schema_accepts(fmt::format(R"({{"exclusiveMaximum":{}}})", bound), text));
  }
  CHECK(schema_accepts(R"({"const":9007199254740992})", "9.007199254740992e+15"));
  CHECK_FALSE(schema_accepts(R"({"not":{"const":5},"type":"number"})", "5e0"));
  CHECK_FALSE(schema_accepts(R"({"maximum":10})", "1e99999999999999999999"));
  CHECK(schema_accepts(R"({"minimum":0,"maximum":1})", "1e-05"));
  CHECK(schema_accepts(R"({"minimum":0,"maximum":1})", "0e7"));
}

}  // namespace test_grammar_schema
