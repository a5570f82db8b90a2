// What a model reads for some messages is one text, whoever renders it: the library, `generate --render`, the server.
#include <ctime>
#include <fstream>

#include <fmt/format.h>

#include <tessera/engine.hpp>
#include <tessera/extend/chat/template_use.hpp>

#include "chat/corpus.hpp"
#include "cli/program.hpp"
#include "sanitized.hpp"
#include "server/http_client.hpp"

namespace test_server_render {

using namespace tessera;
using namespace tessera::tests;
using namespace tessera::tests::server;

namespace {

LocalTime now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm t{};
  localtime_r(&seconds, &t);
  return {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
}

struct Talk {
  const char* name;
  const char* body;  // as the HTTP APIs and --render take it
  bool has_system = false, has_tools = false;
};

constexpr const char* kTools = R"("tools": [{"type": "function", "function": {"name": "weather", "description": "Tells \"it\".", "parameters": {"type": "object",
  "properties": {"city": {"type": "string", "description": "Where"}, "days": {"type": "integer"}}, "required": ["city"]}}}])";

const std::vector<Talk>& talks() {
  static const std::string call = R"({"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": )";
  static const std::string called = R"({"messages": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "", "tool_calls": [)" + call +
                                    R"({"city": "Z\u00fcrich", "days": 2}}}]}, {"role": "tool", "tool_call_id": "call00001", "name": "weather", "content": "{\"sky\": \"rain\"}"}, {"role": "user", "content": "Sure?"}], )" + kTools + "}";
  static const std::string as_text = R"({"messages": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": null, "tool_calls": [)" + call +
                                     R"("{\"city\": \"Z\u00fcrich\", \"days\": 2}"}}]}, {"role": "tool", "tool_call_id": "call00001", "content": "rain"}], )" + kTools + "}";
  static const std::string told = std::string(R"({"messages": [{"role": "user", "content": "Weather?"}], )") + kTools + "}";
  static const std::vector<Talk> all{
      {"a question", R"({"messages": [{"role": "user", "content": "Gr\u00fc\u00dfe <|im_end|>\n </s>"}]})"},
      {"turns", R"({"messages": [{"role": "user", "content": "a "}, {"role": "assistant", "content": " b\n"}, {"role": "user", "content": "c"}]})"},
      {"a system's message", R"({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"}]})", true},
      {"parts", R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "15 "}, {"type": "text", "text": "C"}]}]})"},
      {"reasoning", R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "reasoning_content": "hm", "content": "b"}, {"role": "user", "content": "c"}]})"},
      {"an argument", R"({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"enable_thinking": false}})"},
      {"tools", told.c_str(), false, true},
      {"calls", called.c_str(), false, true},
      {"calls with arguments as a text", as_text.c_str(), false, true},
  };
  return all;
}

std::string temporary_file(const char* what, const std::string& text) {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("tessera-render-{}-{}", what, getpid())).string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// The body with the template's arguments where --render and from_json have them: beside the messages.
Json flat(const Json& body) {
  Json variables = body;
  const Json* arguments = body.find("chat_template_kwargs");
  if (arguments != nullptr) {
    for (const auto& [key, value] : *arguments->members()) variables.set(key, value);
  }
  variables.set("add_generation_prompt", true);
  return variables;
}

}  // namespace

TEST_CASE("the library, generate --render and the server make one text of the same messages, for each held template", "[server]") {
  if (lacks_server() || cli::lacks_program()) return;
  const auto templates = shared_templates();
  if (templates.empty()) return skip("../shared/templates is not there");
  const bool all = std::getenv("TESSERA_TEST_RENDERS") != nullptr;
  const auto special = SpecialTexts::from_settings(ModelFile::open(kStories)->settings());
  REQUIRE(special);
  std::size_t equal = 0, refused = 0, place = 0;
  for (const NamedTemplate& one : templates) {
    if (!all && place++ % unless_sanitized(3u, 15u) != 0) continue;
    INFO(one.name);
    const auto form = ChatTemplate::parse(one.source, *special);
    REQUIRE(form);
    const bool prints = *prints_tools(*form);
    const std::string source = temporary_file("source", one.source);
    const RunningServer server({"--no-log", "--template", source});
    for (const Talk& talk : talks()) {
      INFO(talk.name);
      const Json body = *Json::parse(talk.body), variables = flat(body);
      auto request = ChatRequest::from_json(variables);
      REQUIRE(request);
      const auto own = form->render(*request, {.now = now()});
      const std::string file = temporary_file("talk", variables.dump());
      const cli::Outcome printed = cli::run({"-m", kStories, "--template", source, "--render", file});
      std::filesystem::remove(file);
      INFO(printed.err);
      CHECK(printed.status == (own ? 0 : 1));
      if (own) CHECK(printed.out == own->text());
      const Response response = server.post("/apply-template", body.dump());
      INFO(response.body);
      // Models that know no tools are told of them in words, and a system's message that a template does not show is the user's.
      if (talk.has_tools && !prints) {
        REQUIRE(tell_tools_in_words(*request, *shows_system_message(*form) ? ToolsIn::system_message : ToolsIn::user_message));
        const auto told = form->render(*request, {.now = now()});
        CHECK(response.status == (told ? 200 : 400));
        if (told) CHECK(text_at(response.json(), {"prompt"}) == told->text());
        continue;
      }
      if (talk.has_system && (!own || own->text().find("Be kind.") == std::string::npos)) {
        if (response.status == 200) CHECK(text_at(response.json(), {"prompt"}).find("Be kind.") != std::string::npos);
        continue;
      }
      CHECK(response.status == (own ? 200 : 400));
      if (own) CHECK(text_at(response.json(), {"prompt"}) == own->text());
      ++(own ? equal : refused);
    }
    std::filesystem::remove(source);
  }
  CHECK(equal > unless_sanitized(200u, 40u));
  CHECK(refused < equal / 2);
  if (all) WARN(equal << " equal texts, " << refused << " refusals by all three");
}

}  // namespace test_server_render
