// tessera-grammar as its users run it.
#include "cli/program.hpp"

#include <nlohmann/json.hpp>

namespace test_grammar_tool {

using namespace tessera::tests::cli;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-grammar";
const std::string kVocabulary = TESSERA_SOURCE_DIR "/models/tessera-stories.gguf";

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("tessera-grammar-" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
};

bool lacks_tool() { return lacks(kTool, "tessera-grammar (not built)") || lacks(kVocabulary, "models/tessera-stories.gguf"); }

}  // namespace

TEST_CASE("tessera-grammar --check says the byte and what was expected there") {
  if (lacks_tool()) return;
  const Folder folder;
  const std::string schema = folder.write("schema.json", R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false})");
  const std::string good = folder.write("good.json", " {\"a\": 12}\n"), bad = folder.write("bad.json", R"({"a": "x"})");
  const auto both = run_program(kTool, {"--schema", schema, "--vocab", kVocabulary, "--check", good, bad});
  CHECK(both.status == 1);
  CHECK_THAT(both.out, Catch::Matchers::ContainsSubstring("good.json: accepted"));
  CHECK_THAT(both.out, Catch::Matchers::ContainsSubstring("bad.json: not accepted at byte 6: expected") && Catch::Matchers::ContainsSubstring("'-'"));
  CHECK(run_program(kTool, {"--schema", schema, "--vocab", kVocabulary, "--check", good}).status == 0);
  const auto refused = run_program(kTool, {"--schema", folder.write("u.json", R"({"uniqueItems":true})"), "--vocab", kVocabulary});
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Catch::Matchers::ContainsSubstring("#/uniqueItems"));
  CHECK(run_program(kTool, {"--vocab", kVocabulary}).status == 2);
}

TEST_CASE("tessera-grammar --bench --json has the figures") {
  if (lacks_tool()) return;
  const Folder folder;
  static_cast<void>(folder.write("one.json", R"({"schema":{"type":"array","items":{"type":"integer"}},"tests":[{"valid":true,"data":[1,2]},{"valid":false,"data":[1.5]}]})"));
  static_cast<void>(folder.write("two.json", R"({"schema":{"uniqueItems":true},"tests":[{"valid":true,"data":[1,2]}]})"));
  static_cast<void>(folder.write("wrong.json", R"({"schema":{"type":"null"},"tests":[{"valid":true,"data":1},{"valid":false,"data":null}]})"));
  const auto ran = run_program(kTool, {"--bench", folder.path.string(), "--vocab", kVocabulary, "--json"});
  REQUIRE(ran.status == 0);
  const auto report = nlohmann::json::parse(ran.out);
  CHECK(report.at("files") == 3);
  CHECK(report.at("clean") == 1);
  CHECK(report.at("refused") == 1);
  CHECK(report.at("wrong_accepts") == 1);
  CHECK(report.at("wrong_rejects") == 1);
  CHECK(report.at("refused_by_reason").size() == 1);
  for (const char* times : {"mask_us", "compile_ms"}) {
    for (const char* figure : {"mean", "p50", "p99", "p99_9", "max"}) CHECK(report.at(times).at(figure).get<double>() > 0);
  }
}

}  // namespace test_grammar_tool
