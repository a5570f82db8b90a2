// Messages as the HTTP APIs write them: what from_json() makes of their shapes, and how templates get them.
#include <tessera/chat/chat_template.hpp>

#include "catch.hpp"

namespace test_message_shapes {

using namespace tessera;

namespace {

Json parsed(const std::string& text) {
  const auto json = Json::parse(text);
  REQUIRE(json);
  return *json;
}

std::string rendered(const std::string& source, const std::string& request) {
  const auto made = ChatRequest::from_json(parsed(request));
  REQUIRE(made);
  const auto chat_template = ChatTemplate::parse(source);
  REQUIRE(chat_template);
  const auto text = chat_template->render(*made);
  if (!text) return "error: " + text.error().text();
  return text->text();
}

std::string call(const std::string& content, const std::string& arguments) {
  return R"({"messages": [{"role": "assistant", "content": )" + content + R"(, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": )" + arguments + "}}]}]}";
}

}  // namespace

TEST_CASE("parts that are texts become their text; others stay a list", "[chat]") {
  const std::string source = "{% for m in messages %}{{ m.content }}{% if m.content is string %}!{% endif %}{% endfor %}";
  CHECK(rendered(source, R"({"messages": [{"role": "tool", "content": [{"type": "text", "text": "15 "}, {"type": "text", "text": "C"}]}]})") == "15 C!");
  CHECK(rendered(source, R"({"messages": [{"role": "user", "content": []}]})") == "!");
  CHECK(rendered("{{ messages[0].content.0.type }}", R"({"messages": [{"role": "user", "content": [{"type": "tool_reference", "tool_name": "x"}]}]})") == "tool_reference");
}

TEST_CASE("no tool calls, [] or null, are as if they were not there", "[chat]") {
  for (const char* none : {"[]", "null"}) {
    CHECK(rendered("{{ messages[0].tool_calls is defined }}", R"({"messages": [{"role": "assistant", "content": "A", "tool_calls": )" + std::string(none) + "}]}") == "False");
  }
}

TEST_CASE("arguments that are a text become its object; what is none is an error that names the call", "[chat]") {
  const std::string source = "{% for c in messages[0].tool_calls %}{{ c.function.name }}{% for k, v in c.function.arguments|items %}:{{ k }}={{ v }}{% endfor %}{% endfor %}";
  CHECK(rendered(source, call("\"\"", R"("{\"city\": \"Paris\"}")")) == "f:city=Paris");
  CHECK(rendered(source, call("\"\"", R"({"city": "Paris"})")) == "f:city=Paris");
  CHECK(rendered(source, call("\"\"", "\"\"")) == "f");
  for (const char* broken : {R"("{\"a\": \"x")", R"("[1]")", R"("x")"}) {
    const auto made = ChatRequest::from_json(parsed(call("\"\"", broken)));
    REQUIRE(!made);
    CHECK(made.error().code() == ErrorCode::invalid_argument);
    CHECK(made.error().place() == "messages[0].tool_calls[0].function.arguments");
  }
}

TEST_CASE("content beside calls is as it was sent, unless the template writes no call then", "[chat]") {
  const std::string shows = "{% for c in messages[-1].tool_calls %}{{ c.function.name }}{{ c.function.arguments.word }}{% endfor %}{{ messages[-1].content is none }}";
  CHECK(rendered(shows, call("\"\"", "{}")) == "fFalse");
  CHECK(rendered(shows, call("null", "{}")) == "fTrue");
  // Templates that cut the content need a text; some write calls beside null alone, or join arguments as text.
  const std::string loop = "{% for m in messages %}{% for c in m.tool_calls %}";
  CHECK(rendered(loop + "{{ m.content[:3] }}{{ c.function.arguments.word }}{{ c.function.name }}{% endfor %}{% endfor %}", call("null", "{}")) == "f");
  CHECK(rendered(loop + "{% if m.content is none %}{{ c.function.arguments.word }}{{ c.function.name }}{% endif %}{% endfor %}{% endfor %}", call("\"\"", "{}")) == "f");
  CHECK(rendered(loop + "{{ 'args: ' + c.function.arguments }}{% endfor %}{% endfor %}", call("\"\"", R"({"word": 1})")) == R"(args: {"word": 1})");
}

TEST_CASE("a message made by hand has content \"\" beside its calls", "[chat]") {
  Message message{.role = "assistant", .tool_calls = {{.id = "c", .name = "f", .arguments = Json::object()}}};
  REQUIRE(message.to_json().find("content") != nullptr);
  CHECK(*message.to_json().find("content") == Json(""));
}

}  // namespace test_message_shapes
