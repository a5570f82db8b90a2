// generate's text is what its constraint allows, whole, and a constraint that is none is refused before the model is loaded.
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace test_cli_constraints {

using namespace tessera::tests::cli;
using Json = nlohmann::json;

namespace {

Outcome constrained(const Args& how, int seed) {
  Args args = {"-p", "Once upon a time", "-n", "200", "--seed", std::to_string(seed), "--temp", "1.2"};
  args.insert(args.end(), how.begin(), how.end());
  return run(args);
}

// Without the prompt, which the program repeats.
std::string answer(const Outcome& got) {
  const std::string prompt = "Once upon a time";
  const std::size_t at = got.out.find(prompt);
  std::string text = at == std::string::npos ? got.out : got.out.substr(at + prompt.size());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("a schema's text is a document that it accepts") {
  if (lacks_program()) return;
  const std::string schema = R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},)"
                             R"("age":{"type":"integer","minimum":0,"maximum":120},"tags":{"type":"array","items":{"enum":["a","b"]},)"
                             R"("maxItems":3}},"required":["name","age"],"additionalProperties":false})";
  for (int seed = 1; seed <= 8; ++seed) {
    const Outcome got = constrained({"--json-schema", schema}, seed);
    INFO(got.out << got.err);
    REQUIRE(got.status == 0);
    const Json document = Json::parse(answer(got), nullptr, false);
    REQUIRE(document.is_object());
    CHECK(document.at("name").is_string());
    CHECK(document.at("age") >= 0);
    CHECK(document.at("age") <= 120);
    for (const auto& [key, value] : document.items()) CHECK((key == "name" || key == "age" || key == "tags"));
  }
}

TEST_CASE("a choice's text is one of them, and a pattern's matches") {
  if (lacks_program()) return;
  for (int seed = 1; seed <= 6; ++seed) {
    const Outcome chosen = constrained({"--choice", "yes,no,perhaps"}, seed);
    INFO(chosen.out << chosen.err);
    REQUIRE(chosen.status == 0);
    const std::string text = answer(chosen);
    CHECK((text == "yes" || text == "no" || text == "perhaps"));
    const std::string date = answer(constrained({"--regex", "[12][0-9]{3}-[01][0-9]"}, seed));
    REQUIRE(date.size() == 7);
    CHECK(date[4] == '-');
  }
}

TEST_CASE("a constraint that is none is a mistake of the call, and says what is wrong") {
  if (lacks_program()) return;
  for (const Args& how : {Args{"--regex", "("}, Args{"--json-schema", "{\"type\":7}"}, Args{"--json-schema", "no-such-file.json"},
                          Args{"--grammar", "no-such-file"}, Args{"--choice", "a", "--regex", "b"}}) {
    const Outcome got = constrained(how, 1);
    INFO(how.front() << " " << how.back() << ": " << got.err);
    CHECK(got.status == 2);
    CHECK(got.out.empty());
    CHECK(got.err.find(how.front().substr(2)) != std::string::npos);
  }
}

}  // namespace test_cli_constraints
