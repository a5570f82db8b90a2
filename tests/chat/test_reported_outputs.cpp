// What models wrote that other engines read wrongly, and what is read of random calls that were damaged.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>

#include <tessera/extend/chat/output_parser.hpp>
#include <tessera/extend/chat/template_use.hpp>

#include "catch.hpp"
#include "chat/corpus.hpp"
#include "chat/written_calls.hpp"

namespace test_reported_outputs {

using namespace tessera;
using namespace tessera::tests;

namespace {

struct Read {
  std::string text, reasoning;
  std::vector<std::string> names, arguments;
  std::vector<char> states;  // of each call: begun, ended, broken
  bool operator==(const Read&) const = default;
};

Read read(const OutputFormat& format, std::string_view output, std::size_t piece, const std::vector<Json>& tools, OutputEnd end = OutputEnd::whole) {
  auto parser = OutputParser::create(format, {.tools = tools});
  REQUIRE(parser);
  Read out;
  const auto add = [&](const Result<std::vector<OutputDelta>>& deltas) {
    REQUIRE(deltas);
    for (const OutputDelta& delta : *deltas) {
      switch (delta.kind) {
        case OutputDelta::Kind::text: out.text += delta.text; break;
        case OutputDelta::Kind::reasoning: out.reasoning += delta.text; break;
        case OutputDelta::Kind::call_begin:
          out.names.push_back(delta.name);
          out.arguments.emplace_back();
          out.states.push_back('b');
          break;
        case OutputDelta::Kind::call_arguments: out.arguments.at(delta.call) += delta.text; break;
        case OutputDelta::Kind::call_end: out.states.at(delta.call) = delta.broken ? 'x' : 'e'; break;
      }
    }
  };
  for (std::size_t at = 0; at < output.size(); at += piece) add(parser->push(output.substr(at, piece)));
  add(parser->finish(end));
  return out;
}

// Read whole and in pieces, which must not matter.
Read read_anyhow(const OutputFormat& format, std::string_view output, const std::vector<Json>& tools = {}, OutputEnd end = OutputEnd::whole) {
  const Read whole = read(format, output, std::max<std::size_t>(output.size(), 1), tools, end);
  for (const std::size_t piece : {1, 2, 3, 5, 8}) {
    INFO("pieces of " << piece);
    CHECK(read(format, output, piece, tools, end) == whole);
  }
  return whole;
}

std::vector<Json> tool(const char* name, const char* properties) {
  return {*Json::parse(std::string(R"({"type": "function", "function": {"name": ")") + name + R"(", "parameters": {"type": "object", "properties": )" + properties + "}}}")};
}

struct Report {
  const char* id;
  const char* format;
  const char* output;
  const char* text;
  std::vector<std::pair<const char*, const char*>> calls;  // name, arguments
  const char* states = "e";
  std::vector<Json> tools{};
  const char* reasoning = "";
};

std::vector<Report> reports() {
  const auto strings = [](const char* type) { return tool("f", type); };
  const char* optional = R"({"v": {"anyOf": [{"type": "string"}, {"type": "null"}]}})";
  const char* listed = R"({"v": {"type": ["string", "null"]}})";
  std::vector<Report> out{
      {"T1", "hermes", "<tool_call>\n{\"name\":\"write\",\"arguments\":{\"content\":\"a </tool_call> b\"}}\n</tool_call>", "",
       {{"write", R"({"content": "a </tool_call> b"})"}}},
      {"T2", "glm", "<tool_call>mcp__gmail-cleanup__list_filters</tool_call>", "", {{"mcp__gmail-cleanup__list_filters", "{}"}}},
      {"T3", "glm", "<tool_call>get_weather\n<arg_key>zip</arg_key>\n<arg_value>10001</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
       "", {{"get_weather", R"({"zip": "10001", "days": 3})"}}, "e", tool("get_weather", R"({"zip": {"type": "string"}, "days": {"type": "integer"}})")},
      {"T4", "glm", "<tool_call>list_dir<arg_key>path</arg_key></arg_key><arg_value>/tmp/x</arg_value></tool_call>", "", {{"list_dir", R"({"path": "/tmp/x"})"}}},
      {"T4 b", "glm", "<tool_call>list_dir<arg_key><arg_key>path</arg_key><arg_value>/tmp/x</arg_value></tool_call>", "", {{"list_dir", R"({"path": "/tmp/x"})"}}},
      {"T5", "qwen-xml", "<tool_call>\n<function=edit>\n<parameter=old>\n    if x:\n        y()\n\n</parameter>\n</function>\n</tool_call>", "",
       {{"edit", R"({"old": "    if x:\n        y()\n"})"}}, "e", tool("edit", R"({"old": {"type": "string"}})")},
      {"T6", "qwen-xml", "<tool_call>\n<function=f>\n<parameter=content>\nwrite </parameter> to close it\n</parameter>\n</function>\n</tool_call>", "",
       {{"f", R"({"content": "write </parameter> to close it"})"}}, "e", tool("f", R"({"content": {"type": "string"}})")},
      {"T7", "qwen-xml", "<tool_call>\n<function=run>\n<parameter=ids: [1]\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>", "",
       {{"run", R"({"b": 2})"}}, "x"},
      {"T7 b", "qwen-xml", "<tool_call>\n<function=run>\n<parameter=\nids</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>", "",
       {{"run", R"({"b": 2})"}}, "x"},
      {"T7 c", "qwen-xml", "<tool_call>\n<function=run>\n<parameter=\nids</parameter>\n</function>\n</tool_call>", "", {{"run", "{}"}}, "x"},
      {"T8", "qwen-xml", "<tool_call>\n<function=w>\n<parameter=path>\n/a.txt\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>", "",
       {{"w", R"({"path": "/a.txt", "content": "hello"})"}}},
      {"T8 minimax", "minimax", "<minimax:tool_call>\n<invoke name=\"w\">\n<parameter name=\"path\">/a.txt\n<parameter name=\"content\">hello</parameter>\n</invoke>\n"
                                "</minimax:tool_call>",
       "", {{"w", R"({"path": "/a.txt", "content": "hello"})"}}},
      {"T8 glm", "glm", "<tool_call>w<arg_key>a</arg_key>\n<arg_value>x\n<arg_key>b</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", "",
       {{"w", R"({"a": "x", "b": 1})"}}},
      {"T12", "lfm", "<|tool_call_start|> [run(command='grep -F \"]\" a, b', lon=-74.5, size=(800, 600), from=1, code=\"plot(x, label='')\\nshow()\", "
                     "end='x\\\\')]<|tool_call_end|>",
       "", {{"run", R"x({"command": "grep -F \"]\" a, b", "lon": -74.5, "size": [800, 600], "from": 1, "code": "plot(x, label='')\nshow()", "end": "x\\"})x"}}},
      {"T14", "mistral-args", "[TOOL_CALLS]a[ARGS]{\"e\":[{\"n\":\"}\"}]}[TOOL_CALLS]b[ARGS]{}", "", {{"a", R"({"e": [{"n": "}"}]})"}, {"b", "{}"}}, "ee"},
      {"T14 b", "mistral-args", "[TOOL_CALLS]grep[ARGS]{\"p\":\"x\"}\n\nNow I look.", "Now I look.", {{"grep", R"({"p": "x"})"}}},
      {"T14 c", "mistral", "[TOOL_CALLS] [{\"name\":\"c\",\"arguments\":{\"x\":\"2+3\"}}]", "", {{"c", R"({"x": "2+3"})"}}},
      {"T14 d", "mistral-args", "[TOOL_CALLS] [{\"name\":\"c\",\"arguments\":{\"x\":\"2+3\"}}]", "", {{"c", R"({"x": "2+3"})"}}},
      {"T14 e", "mistral", "[TOOL_CALLS]a[ARGS]{}", "", {{"a", "{}"}}},
      {"T15 a", "harmony", "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary?Hi", "?Hi", {}, "", {}, "t"},
      {"T15 b", "harmony", "<|channel|>finalx<|message|>Hi", "Hi", {}, ""},
      {"T15 c", "harmony", "<|channel|>analysisHi", "", {}, "", {}, "Hi"},
      {"T15 d", "harmony", "<|channel|>final <|constrain|>json<|message|>{\"a\":1}<|return|>", "{\"a\":1}", {}, ""},
      {"T16", "harmony", "{\"verdict\":\"clarify\"}<|return|>", "{\"verdict\":\"clarify\"}", {}, ""},
      {"behind <|start|>assistant", "harmony", " to=functions.f<|channel|>commentary json<|message|>{\"a\":1}<|call|>", "", {{"f", R"({"a": 1})"}}},
      {"a text that begins so", "harmony", " to=be or not", " to=be or not", {}, ""},
      {"T18", "deepseek-dsml", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"bash\">\n<", "", {{"bash", "{"}}, "b"},
      {"T19", "gemma", "<|channel>thought\n<channel|>OK", "OK", {}, ""},
      {"T19 b", "gemma", "<|channel>thought<channel|>OK", "OK", {}, ""},
      {"T20", "hermes", "<think>Only thought", "", {}, "", {}, "Only thought"},
      {"T21", "hermes", "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"b\", \"arguments\": {}}</tool_call>", "", {{"a", "{}"}, {"b", "{}"}}, "ee"},
      // Found by damaging outputs.
      {"a header without its end", "qwen-xml", "<tool_call>\n<function=f\n<parameter=a>\n-3\n</parameter>\n</function>\n</tool_call>", "", {{"f", R"({"a": -3})"}}},
      {"a key without its end", "glm", "<tool_call>f<arg_key>a</arg_ke>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n</tool_call>", "",
       {{"f", R"({"b": 2})"}}, "x"},
      {"a name without its end", "kimi", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0|x|>{}<|tool_call_end|><|tool_call_begin|>functions.g:1"
                                         "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
       "functions.f:0|x|>{}", {{"g", "{}"}}},
      {"brackets that do not match", "lfm", "<|tool_call_start|>[f([)]<|tool_call_end|>", "f([)]", {}, ""},
      {"arguments that are no JSON", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \\}</tool_call>", "", {{"f", "\\"}}, "x"},
      {"a number for arguments", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": 5}</tool_call>", "", {{"f", "5"}}, "x"},
      {"arguments in a text", "hermes", R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)", "", {{"f", R"({"a": 1})"}}},
      {"a bracket too few", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}\n</tool_call>ok", "ok", {{"f", R"({"a": 1})"}}},
      {"the other form", "qwen-xml", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "", {{"f", "{}"}}},
      {"Python's escapes", "lfm", R"(<|tool_call_start|>[f(a='\x7f\u200b\101')]<|tool_call_end|>)", "", {{"f", "{\"a\": \"\x7f\xE2\x80\x8B" "A\"}"}}},
      {"a marker in a string", "gemma", "<|tool_call>call:f{a:<|\"|>x <tool_call|> y<|\"|>}<tool_call|>", "", {{"f", R"({"a": "x <tool_call|> y"})"}}},
      {"odd keys", "gemma", "<|tool_call>call:f{o:{a b:1,ключ:2}}<tool_call|>", "", {{"f", R"({"o": {"a b": 1, "ключ": 2}})"}}},
      {"white space is the value's", "minimax", "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x\n</parameter>\n</invoke>\n</minimax:tool_call>", "",
       {{"f", R"({"a": "x\n"})"}}},
  };
  for (const char* format : {"qwen-xml", "glm"}) {
    const bool xml = std::string_view(format) == "qwen-xml";
    const auto value = [&](const char* text) {
      static std::vector<std::string> kept(64);
      static std::size_t next = 0;
      return (kept.at(next++) = xml ? "<tool_call>\n<function=f>\n<parameter=v>\n" + std::string(text) + "\n</parameter>\n</function>\n</tool_call>"
                                    : "<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>" + std::string(text) + "</arg_value>\n</tool_call>")
          .c_str();
    };
    for (const char* type : {optional, listed}) {
      out.push_back({"T9", format, value("4"), "", {{"f", R"({"v": "4"})"}}, "e", strings(type)});
      out.push_back({"T9", format, value("1e5"), "", {{"f", R"({"v": "1e5"})"}}, "e", strings(type)});
      out.push_back({"T9", format, value("true"), "", {{"f", R"({"v": "true"})"}}, "e", strings(type)});
      out.push_back({"T9", format, value("null"), "", {{"f", R"({"v": null})"}}, "e", strings(type)});
    }
    out.push_back({"T9", format, value("null"), "", {{"f", R"({"v": "null"})"}}, "e", strings(R"({"v": {"type": "string"}})")});
    out.push_back({"T9", format, value("4"), "", {{"f", R"({"v": "4"})"}}, "e", strings(R"({"v": {"enum": ["4", "5"]}})")});
    out.push_back({"T10", format, value("2026-01-15"), "", {{"f", R"({"v": "2026-01-15"})"}}, "e", strings(R"({"v": {"type": "integer"}})")});
    out.push_back({"no number of JSON", format, value("1e999"), "", {{"f", R"({"v": "1e999"})"}}});
  }
  const std::vector<Json> weather = tool("get_weather", "{}");
  for (const char* id : {"functions_get_weather_1", "functionsget_weather5", "functions.get_weather:0", "get_weather:3", "get_weather", "functions.get_weather"}) {
    static std::vector<std::string> kept;
    kept.reserve(8);
    kept.push_back("<|tool_calls_section_begin|><|tool_call_begin|>" + std::string(id) + "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>");
    out.push_back({"T13", "kimi", kept.back().c_str(), "", {{"get_weather", "{}"}}, "e", weather});
  }
  return out;
}

}  // namespace

TEST_CASE("outputs of public reports are read rightly, whole and in pieces") {
  for (const Report& report : reports()) {
    INFO(report.id << ", " << report.format << ": " << report.output);
    const Read got = read_anyhow(*find_output_format(report.format), report.output, report.tools);
    CHECK(got.text == report.text);
    CHECK(got.reasoning == report.reasoning);
    REQUIRE(got.names.size() == report.calls.size());
    CHECK(std::string(got.states.begin(), got.states.end()) == (report.calls.empty() ? "" : report.states));
    for (std::size_t i = 0; i < got.names.size(); ++i) {
      CHECK(got.names[i] == report.calls[i].first);
      const auto json = Json::parse(got.arguments[i]);
      CHECK((json ? json->dump() : got.arguments[i]) == report.calls[i].second);
    }
  }
}

TEST_CASE("a call that was cut anywhere has no piece of a marker in its arguments") {
  const std::string output = "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"bash\">\n<｜DSML｜parameter name=\"cmd\" string=\"true\">ls 2>&1"
                             "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
  for (std::size_t end = 0; end <= output.size(); ++end) {
    for (const OutputEnd how : {OutputEnd::cut, OutputEnd::whole}) {
      const Read got = read_anyhow(*find_output_format("deepseek-dsml"), output.substr(0, end), {}, how);
      for (const std::string& arguments : got.arguments) {
        INFO(output.substr(0, end));
        CHECK(std::string(R"({"cmd": "ls 2>&1"})").starts_with(arguments.substr(0, 2)));
        CHECK(arguments.find("DSML") == std::string::npos);
      }
    }
  }
}

namespace {

std::string random_text(std::mt19937& random, const std::vector<std::string>& marks) {
  const char* const parts[] = {"a", "\"", "\\", "{", "}", "[", "]", "<", ">", ":", ",", "é", " b", "c", "1", "'", "(", ")", "</", "|", "日"};
  std::string out;
  for (auto n = random() % 6; n > 0; --n) out += parts[random() % std::size(parts)];
  if (!marks.empty() && random() % 8 == 0) out += " " + marks[random() % marks.size()] + " ";
  return "t" + out + "t";
}

Json random_arguments(std::mt19937& random, const std::vector<std::string>& marks) {
  Json out = Json::object();
  if (random() % 4 != 0) out.set("s", random_text(random, marks));
  if (random() % 3 == 0) out.set("n", static_cast<std::int64_t>(random() % 100) - 50);
  if (random() % 3 == 0) out.set("l", Json::Array{Json(random_text(random, {})), Json(random_text(random, {}))});
  if (random() % 3 == 0) {
    Json inner = Json::object();
    inner.set("k", random_text(random, {}));
    out.set("o", std::move(inner));
  }
  if (random() % 3 == 0) out.set("u", random() % 2 == 0 ? Json() : Json(random_text(random, marks)));
  return out;
}

std::vector<Json> random_tools() {
  return tool("get_it", R"({"s": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}},
      "o": {"type": "object", "properties": {"k": {"type": "string"}}}, "u": {"anyOf": [{"type": "string"}, {"type": "null"}]}})");
}

// What a template writes for an assistant's message behind the prompt; empty: it cannot be had.
std::string written(const ChatTemplate& chat_template, ChatRequest request) {
  request.add_generation_prompt = false;
  std::vector<std::string> texts;
  Message answer = std::move(request.messages.back());
  request.messages.pop_back();
  for (const bool prompt : {false, true}) {
    request.add_generation_prompt = prompt;
    const auto text = chat_template.render(request, {.now = kNow});
    if (!text) return {};
    texts.push_back(text->text());
  }
  request.add_generation_prompt = false;
  request.messages.push_back(std::move(answer));
  const auto text = chat_template.render(request, {.now = kNow});
  if (!text) return {};
  texts.push_back(text->text());
  const auto common = [](const std::string& a, const std::string& b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  };
  std::string out = texts[2].substr(common(texts[0], texts[2]));
  const std::string header = texts[1].substr(common(texts[0], texts[1]));
  std::size_t head = common(header, out);
  while (head < header.size() && head > 0 && header[head - 1] != '>' && header[head - 1] != '\n') --head;  // no half of a marker
  return out.substr(head);
}

// What holds of any output, however damaged.
void check_promises(const OutputFormat& format, const std::vector<std::string>& marks, const std::string& output, const std::vector<Json>& tools, OutputEnd end) {
  const Read whole = read(format, output, std::max<std::size_t>(output.size(), 1), tools, end);
  const bool same = read(format, output, 1, tools, end) == whole && read(format, output, 7, tools, end) == whole;
  if (!same) FAIL_CHECK(format.name << ": pieces matter: " << output);
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const auto json = Json::parse(whole.arguments[i]);
    const bool is_object = json && json->members() != nullptr;
    if (whole.states[i] == 'e' && !is_object) FAIL_CHECK(format.name << ": ended with " << whole.arguments[i] << ": " << output);
    for (const std::string& mark : marks) {
      if (whole.names[i].find(mark) != std::string::npos) FAIL_CHECK(format.name << ": a marker in the name " << whole.names[i] << ": " << output);
      if (!is_object) continue;
      for (const auto& [key, value] : *json->members()) {
        if (key.find(mark) != std::string::npos) FAIL_CHECK(format.name << ": a marker in the key " << key << ": " << output);
      }
    }
  }
}

}  // namespace

TEST_CASE("a template that writes calls otherwise than the format reads them is noticed") {
  const auto templates = shared_templates();
  if (templates.empty()) return skip("../shared/templates is not there");
  std::size_t printed = 0;
  for (const NamedTemplate& one : templates) {
    const auto chat_template = ChatTemplate::parse(one.source, one.special);
    if (!chat_template) continue;
    const OutputFormat format = *choose_output_format(*chat_template);
    const auto check = check_calls(*chat_template, format);
    REQUIRE(check);
    if (!check->printed) continue;
    ++printed;
    INFO(one.name << ", " << format.name << ": " << check->written);
    CHECK(check->read);
    CHECK(check->warning.empty());
    const auto wrong = check_calls(*chat_template, *find_output_format(format.name == "solar" ? "kimi" : "solar"));
    CHECK_FALSE(wrong->read);
    CHECK(wrong->warning.find("solar") != std::string::npos);
  }
  CHECK(printed >= 30);
}

TEST_CASE("random calls come back from every template, and damaged ones keep the parser's promises") {
  const auto templates = shared_templates();
  if (templates.empty()) return skip("../shared/templates is not there");
  const char* more = std::getenv("TESSERA_TEST_CALLS");  // samples a template
  const int samples = more != nullptr ? std::atoi(more) : 2;
  std::mt19937 random(more != nullptr ? std::random_device()() : 5);
  std::vector<std::string> formats;
  std::size_t read_back = 0, unequal = 0, damaged = 0;
  for (const NamedTemplate& one : templates) {
    const auto chat_template = ChatTemplate::parse(one.source, {.bos = "<s>", .eos = "</s>"});
    if (!chat_template) continue;
    const OutputFormat format = *choose_output_format(*chat_template);
    if (format.name == "think") continue;
    const std::vector<std::string> marks = marks_of(format);
    for (int sample = 0; sample < samples; ++sample) {
      const Json arguments = random_arguments(random, marks);
      const ChatRequest request{.messages = {{.role = "user", .content = "Q"},
                                             {.role = "assistant", .tool_calls = {{.id = "call00001", .name = "get_it", .arguments = arguments}}}},
                                .tools = random_tools()};
      const std::string output = written(*chat_template, request);
      if (output.find("get_it") == std::string::npos) continue;
      const Read got = read(format, output, output.size(), random_tools());
      const auto json = got.arguments.empty() ? Result<Json>(Json()) : Json::parse(got.arguments[0]);
      ++read_back;
      if (!json || !same_members(*json, arguments)) {
        ++unequal;
        if (more != nullptr) WARN(one.name << ", " << format.name << ": " << arguments.dump() << " came back as " << (got.arguments.empty() ? "text" : got.arguments[0]) << " from " << output);
      }
      const std::vector<Json> tools = random_tools();
      if (std::ranges::find(formats, format.name) == formats.end()) formats.push_back(format.name);
      const std::size_t step = more != nullptr ? 1 : 7;
      for (std::size_t at = random() % step; at < output.size(); at += step) {
        std::string changed = output;
        changed[at] = static_cast<char>(random() % 3 == 0 ? random() % 128 : static_cast<unsigned>(" \n<>{}\"'/="[random() % 10]));
        check_promises(format, marks, changed, tools, OutputEnd::whole);
        check_promises(format, marks, output.substr(0, at), tools, random() % 2 == 0 ? OutputEnd::whole : OutputEnd::cut);
        damaged += 2;
      }
    }
  }
  CHECK(formats.size() >= 18);
  CHECK(read_back > 0);
  CHECK(unequal * 20 <= read_back);  // strings that hold a whole line of markers, and templates that escape nothing
  if (more != nullptr) WARN(read_back << " read back, " << unequal << " not equal, " << damaged << " damaged, " << formats.size() << " formats");
}

TEST_CASE("functionary 3.2: answers of parts with recipients, whole, cut and damaged") {
  const char* more = std::getenv("TESSERA_TEST_CALLS");
  const int samples = more != nullptr ? std::atoi(more) : 40;
  std::mt19937 random(more != nullptr ? std::random_device()() : 7);
  const auto chat_template = ChatTemplate::parse(kFunctionary);
  REQUIRE(chat_template);
  const OutputFormat format = *choose_output_format(*chat_template);
  REQUIRE(format.name == "functionary-3.2");
  CHECK(check_calls(*chat_template, format)->read);
  const std::vector<std::string> marks{">>>"};
  for (int sample = 0; sample < samples; ++sample) {
    Message answer{.role = "assistant"};
    if (random() % 2 == 0) answer.content = "Text of >>> marks.";
    std::vector<Json> arguments;
    for (auto n = 1 + random() % 3; n > 0; --n) {
      arguments.push_back(random_arguments(random, {">>>get_it\n{}", ">>>all\n"}));
      answer.tool_calls.push_back({.id = "call00001", .name = "get_it", .arguments = arguments.back()});
    }
    const std::string output = written(*chat_template, {.messages = {{.role = "user", .content = "Q"}, answer}, .tools = random_tools()});
    INFO(output);
    const std::vector<Json> tools = sample % 2 == 0 ? random_tools() : std::vector<Json>{};
    const Read got = read(format, output, output.size(), tools);
    CHECK(got.text == answer.content);
    REQUIRE(got.arguments.size() == arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      CHECK(got.names[i] == "get_it");
      CHECK(*Json::parse(got.arguments[i]) == arguments[i]);
    }
    for (std::size_t at = 0; at < output.size(); ++at) {
      check_promises(format, marks, output.substr(0, at), tools, random() % 2 == 0 ? OutputEnd::whole : OutputEnd::cut);
      std::string changed = output;
      changed[at] = static_cast<char>(random() % 3 == 0 ? random() % 128 : static_cast<unsigned>(" \n<>{}\"'/="[random() % 10]));
      check_promises(format, {}, changed, tools, OutputEnd::whole);
    }
  }
}

TEST_CASE("damaged calls of every format keep the parser's promises") {
  const char* more = std::getenv("TESSERA_TEST_CALLS");
  const int samples = more != nullptr ? std::atoi(more) : 2;
  std::mt19937 random(more != nullptr ? std::random_device()() : 6);
  for (const OutputFormat& format : formats_with_calls()) {
    const std::vector<std::string> marks = marks_of(format);
    for (int sample = 0; sample < samples; ++sample) {
      std::vector<Call> calls;
      for (auto n = 1 + random() % 2; n > 0; --n) calls.push_back({"get_it", random_arguments(random, marks)});
      const std::string text = format.recipients ? "all\nHm. >>> x" + format.recipients->mark : "Hm. ";
      const std::string output = text + written(format.name, calls) + " Done.";
      const std::vector<Json> tools = random() % 2 == 0 ? random_tools() : std::vector<Json>{};
      const std::size_t step = more != nullptr ? 1 : 5;
      for (std::size_t at = random() % step; at < output.size(); at += step) {
        std::string changed = output;
        changed[at] = static_cast<char>(random() % 3 == 0 ? random() % 128 : static_cast<unsigned>(" \n<>{}\"'/="[random() % 10]));
        check_promises(format, marks, changed, tools, OutputEnd::whole);
        changed.erase(at, random() % 6);
        check_promises(format, marks, changed, tools, OutputEnd::cut);
        check_promises(format, marks, output.substr(0, at), tools, random() % 2 == 0 ? OutputEnd::whole : OutputEnd::cut);
      }
    }
  }
}

}  // namespace test_reported_outputs
