// Templates and expressions against jinja2 itself: golden/ is what make_goldens.py has written.
#include <map>

#include "catch.hpp"
#include "chat/corpus.hpp"

namespace test_chat_goldens {

using namespace tessera;
using namespace tessera::tests;

TEST_CASE("every template gives jinja2's text for every conversation, or both refuse") {
  const auto templates = shared_templates();
  if (templates.empty()) return skip("../shared/templates is not there");
  const auto talks = conversations();
  REQUIRE(talks.size() > 30);

  std::map<std::string, std::vector<std::string>> golden;
  for (const std::string& line : lines(chat_file("golden/renders.txt"))) {
    std::istringstream fields(line);
    std::string name, field;
    fields >> name;
    while (fields >> field) golden[name].push_back(field);
  }
  CHECK(golden.size() == templates.size());
  std::size_t rendered = 0;
  for (const NamedTemplate& one : templates) {
    INFO(one.name);
    const auto& expected = golden.at(one.name);
    REQUIRE(expected.size() == talks.size());
    const auto parsed = ChatTemplate::parse(one.source, one.special);
    for (std::size_t i = 0; i < talks.size(); ++i) {
      INFO("conversation " << i);
      const auto text = parsed ? parsed->render(talks[i], {.now = kNow}) : Result<RenderedText>(parsed.error());
      if (!text) INFO(text.error().text());
      const std::string field = golden_field(text);
      if (field != expected[i]) {
        UNSCOPED_INFO((text ? text->text().substr(0, 4000) : text.error().text()));
      }
      CHECK(field == expected[i]);
      rendered += text ? 1 : 0;
    }
  }
  CHECK(rendered > 2000);
}

TEST_CASE("small expressions give jinja2's answers") {
  const auto inputs = lines(chat_file("expressions.in"));
  const auto answers = lines(chat_file("golden/expressions.txt"));
  REQUIRE(inputs.size() == answers.size());
  const auto variables = Json::parse(chat_file("expressions.json"));
  REQUIRE(variables);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::string source = inputs[i];
    for (std::size_t at; (at = source.find("\\n")) != std::string::npos;) source.replace(at, 2, "\n");
    INFO(inputs[i]);
    const auto parsed = ChatTemplate::parse(source);
    const auto text = parsed ? parsed->render(*variables, {.now = kNow}) : Result<RenderedText>(parsed.error());
    if (answers[i] == "-") {
      CHECK_FALSE(text);
      if (!text) CHECK(text.error().place().starts_with("chat template"));
      continue;
    }
    const auto expected = Json::parse(answers[i]);
    REQUIRE(expected);
    CHECK((text ? text->text() : text.error().text()) == *expected->string());
  }
}

}  // namespace test_chat_goldens
