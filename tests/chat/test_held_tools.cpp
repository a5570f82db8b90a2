// Tools whose schemas ask for more than most: what of them is held.
#include <tessera/extend/chat/tool_grammar.hpp>

#include "catch.hpp"
#include "chat/written_calls.hpp"

namespace test_held_tools {

using namespace tessera;
using namespace tessera::tests;

TEST_CASE("strings that stand as they are keep their length, pattern and format") {
  const auto tool = [](const char* name, const char* property) {
    return *Json::parse(std::string(R"({"name": ")") + name + R"(", "parameters": {"properties": {"u": )" + property + R"(}, "required": ["u"]}})");
  };
  const std::vector<Json> tools{tool("len", R"({"type": "string", "minLength": 2, "maxLength": 3})"), tool("pat", R"({"type": "string", "pattern": "\\S"})"),
                                tool("uri", R"({"type": "string", "format": "date"})"), tool("opt", R"({"anyOf": [{"type": "string"}, {"type": "null"}]})"),
                                tool("list", R"({"type": ["string", "null"], "minLength": 5})")};
  const std::pair<const char*, std::pair<const char*, const char*>> formats[] = {
      {"qwen-xml", {"<tool_call>\n<function=%>\n<parameter=u>\n", "\n</parameter>\n</function>\n</tool_call>"}},
      {"minimax", {"<minimax:tool_call>\n<invoke name=\"%\">\n<parameter name=\"u\">", "</parameter>\n</invoke>\n</minimax:tool_call>"}},
      {"glm", {"<tool_call>%\n<arg_key>u</arg_key>\n<arg_value>", "</arg_value>\n</tool_call>"}},
      {"deepseek-dsml", {"<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"%\">\n<｜DSML｜parameter name=\"u\" string=\"true\">",
                         "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"}},
  };
  for (const auto& [format, around] : formats) {
    const auto grammar = tool_grammar(*find_output_format(format), tools, {.use = ToolUse::at_once});
    if (!grammar) FAIL(format << ": " << grammar.error().text());
    const CompiledGrammar compiled = *CompiledGrammar::create(*grammar, vocabulary());
    const auto held = [&](const std::string& name, const std::string& value) {
      std::string open = around.first;
      open.replace(open.find('%'), 1, name);
      return compiled.check(open + value + around.second)->accepted;
    };
    INFO(format);
    CHECK(held("len", "ab"));
    CHECK(held("len", "äöü"));
    CHECK_FALSE(held("len", "a"));
    CHECK_FALSE(held("len", "abcd"));
    CHECK(held("pat", " a "));
    CHECK_FALSE(held("pat", "   "));
    CHECK(held("uri", "2026-11-27"));
    CHECK_FALSE(held("uri", "tomorrow"));
    CHECK(held("opt", "free text, 4"));
    CHECK(held("list", "fives"));
    CHECK_FALSE(held("list", "four"));
  }
}

TEST_CASE("a tool whose schema cannot be held takes nothing from the others, and is named") {
  const Json a = *Json::parse(R"({"name": "a", "parameters": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}})");
  const Json b = *Json::parse(R"({"name": "b", "parameters": {"properties": {"u": {"type": "string", "pattern": "(?<=x)y"}, "v": {"type": "integer"}}, "required": ["v"]}})");
  for (const OutputFormat& format : formats_with_calls()) {
    INFO(format.name);
    const std::vector<Json> both{a, b};
    CHECK_FALSE(tool_grammar(format, both));
    const auto held = held_tool_grammar(format, both, {.use = ToolUse::at_once});
    if (!held) FAIL(held.error().text());
    REQUIRE(held->warnings.size() == 1);
    CHECK(held->warnings[0].find("'b'") != std::string::npos);
    CHECK(held->warnings[0].find("pattern") != std::string::npos);
    const CompiledGrammar compiled = *CompiledGrammar::create(held->grammar, vocabulary());
    const auto call = [&](const char* name, const char* arguments) {
      std::string text = written(format.name, {{name, *Json::parse(arguments)}});
      for (const char* thought : {"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant", "<think>so</think>", "<think>\nso\n</think>\n\n",
                                  "<|START_THINKING|>so<|END_THINKING|>", "<think:opensource></think:opensource>"}) {
        if (text.starts_with(thought)) text.erase(0, std::string(thought).size());
      }
      return compiled.check(text)->accepted;
    };
    CHECK(call("a", R"({"x": 1})"));
    CHECK_FALSE(call("a", R"({"x": "one"})"));
    CHECK(call("b", R"({"u": "any text", "v": 2})"));
    const auto alone = held_tool_grammar(format, std::vector<Json>{a});
    REQUIRE(alone);
    CHECK(alone->warnings.empty());
  }
}

}  // namespace test_held_tools
