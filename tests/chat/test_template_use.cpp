// Tools, begun answers and reasoning under another name: how a model is told of them where its template cannot say them.
#include <tessera/extend/chat/template_use.hpp>

#include "catch.hpp"
#include "chat/corpus.hpp"

namespace test_template_use {

using namespace tessera;
using namespace tessera::tests;

namespace {

std::vector<Json> tools() {
  return {*Json::parse(R"({"type": "function", "function": {"name": "get_it", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}})")};
}

}  // namespace

TEST_CASE("tools are told in words where a template does not print them") {
  const auto plain = ChatTemplate::parse("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  const auto mentions = ChatTemplate::parse("{% if tools and false %}x{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}");
  const auto prints = ChatTemplate::parse("{{ tools|tojson }}{% for m in messages %}{{ m.content }}{% endfor %}");
  CHECK_FALSE(*prints_tools(*plain));
  CHECK_FALSE(*prints_tools(*mentions));
  CHECK(*prints_tools(*prints));
  ChatRequest request{.messages = {{.role = "user", .content = "Q"},
                                   {.role = "assistant", .tool_calls = {{.id = "1", .name = "get_it", .arguments = Json::object()}}},
                                   {.role = "tool", .content = "R", .tool_call_id = "1"}},
                      .tools = tools()};
  REQUIRE(tell_tools_in_words(request));
  CHECK(request.tools.empty());
  REQUIRE(request.messages.size() == 4);
  CHECK(request.messages[0].role == "system");
  CHECK(request.messages[0].content.find("\"get_it\"") != std::string::npos);
  CHECK(request.messages[2].content == "<tool_call>\n{\"name\": \"get_it\", \"arguments\": {}}\n</tool_call>");
  CHECK(request.messages[3].role == "user");
  CHECK(request.messages[3].content == "<tool_response>\nR\n</tool_response>");
  CHECK(*shows_system_message(*plain));
  CHECK_FALSE(*shows_system_message(*ChatTemplate::parse("{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{% endfor %}")));
  CHECK_FALSE(*shows_system_message(*ChatTemplate::parse("{{ raise_exception('no') }}")));
  ChatRequest parts{.messages = {{.role = "system", .content = "S"}, {.role = "user", .parts = {{.type = "image"}}}}, .tools = tools()};
  REQUIRE(tell_tools_in_words(parts, ToolsIn::user_message));
  REQUIRE(parts.messages.size() == 2);  // two messages of a user in a row are refused by many templates
  REQUIRE(parts.messages[1].parts.size() == 2);
  CHECK(parts.messages[1].parts[0].type == "text");
  CHECK(parts.messages[1].parts[0].text.find("\"get_it\"") != std::string::npos);
}

TEST_CASE("an answer that is begun stands behind the template's reasoning, or in it") {
  const OutputFormat hermes = *find_output_format("hermes"), harmony = *find_output_format("harmony"), functionary = *find_output_format("functionary-3.2");
  struct Begun {
    const OutputFormat* format;
    const char *prompt, *begun, *whole;
    bool in_reasoning;
  };
  const Begun all[] = {
      {&hermes, "A:", "The answer is", "A:The answer is", false},
      {&hermes, "A:<think>\n", "The answer is", "A:<think>\n\n</think>\n\nThe answer is", false},
      {&hermes, "A:<think>\n", "<think>\n\n</think>\n\n", "A:<think>\n\n</think>\n\n", false},
      {&hermes, "A:<think>\n", "<think>\nhm", "A:<think>\nhm", true},
      {&hermes, "A:<think>\n", "so</think>Yes", "A:<think>\nso</think>Yes", false},
      {&hermes, "A:<think>\n", "", "A:<think>\n", true},
      {&hermes, "A:", "<think>\nhm", "A:<think>\nhm", true},
      {&hermes, "A:", "", "A:", false},
      {&functionary, "assistant\n\n>>>", "The answer", "assistant\n\n>>>all\nThe answer", false},
      {&harmony, "<|start|>assistant", "The answer", "<|start|>assistant<|channel|>final<|message|>The answer", false},
  };
  for (const Begun& one : all) {
    INFO(one.prompt << " + " << one.begun);
    RenderedText prompt{.spans = {{.text = one.prompt}}};
    const auto in_reasoning = begin_answer(prompt, *one.format, one.begun);
    REQUIRE(in_reasoning);
    CHECK(prompt.text() == one.whole);
    CHECK(*in_reasoning == one.in_reasoning);
    for (const RenderedSpan& span : prompt.spans) {  // markers are the template's, and nothing else is
      if (span.origin == TextOrigin::from_message) CHECK(span.text.find("think>") == std::string::npos);
    }
  }
}

TEST_CASE("reasoning is given by the name that a template reads") {
  const ChatRequest request{.messages = {{.role = "user", .content = "Q"},
                                         {.role = "assistant", .content = "", .reasoning = "R", .tool_calls = {{.id = "1", .name = "f", .arguments = Json::object()}}}},
                            .add_generation_prompt = false};
  const auto rendered = [&](const char* source) { return ChatTemplate::parse(source)->render(request)->text(); };
  CHECK(rendered("{% for message in messages %}{{ message.thinking }}{% endfor %}") == "R");
  CHECK(rendered("{% for message in messages %}{% if 'x' in message.content %}no{% endif %}{{ message['thought'] }}{% endfor %}") == "R");
  CHECK(rendered("{% for message in messages %}{{ message.reasoning_content }}{{ message.thinking }}{% endfor %}") == "R");
  // Content beside calls stays content, unless the template refuses it beside reasoning.
  const auto with_content = [&](const std::string& before) {
    ChatRequest both = request;
    both.messages[1].content = "C";
    return ChatTemplate::parse(before + "{% for message in messages %}[{{ message.content }}|{{ message.thinking }}]{{ message.tool_calls }}{% endfor %}")->render(both)->text();
  };
  CHECK(with_content("").find("[C|R]") != std::string::npos);
  CHECK(with_content("{% for message in messages %}{% if message.tool_calls and message.content and message.thinking %}{{ raise_exception('both') }}{% endif %}{% endfor %}")
            .find("[|R\n\nC]") != std::string::npos);
  for (const NamedTemplate& one : shared_templates()) {
    if (one.name != "openai-gpt-oss-120b.jinja") continue;
    const ChatTemplate oss = *ChatTemplate::parse(one.source, one.special);
    for (const char* content : {"", "c"}) {
      ChatRequest history = request;
      history.messages[1].content = content;
      const auto text = oss.render(history, {.now = kNow});
      if (!text) FAIL(text.error().text());
      CHECK(text->text().find("analysis<|message|>R") != std::string::npos);
      CHECK(text->text().find("to=functions.f") != std::string::npos);
    }
  }
}

}  // namespace test_template_use
