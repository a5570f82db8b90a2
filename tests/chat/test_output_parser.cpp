// What models write, in every format that is described: read whole, and cut anywhere.
#include <random>

#include <tessera/extend/chat/output_parser.hpp>

#include "catch.hpp"
#include "chat/corpus.hpp"
#include "sanitized.hpp"

namespace test_output_parser {

using namespace tessera;
using namespace tessera::tests;

namespace {

struct Sample {
  const char* format;
  const char* output;
  const char* text;
  const char* reasoning;
  std::vector<std::pair<const char*, const char*>> calls;  // name, arguments
};

std::vector<Sample> samples() {
  return {
      {"think", "Hello <b>world</b> < you\n", "Hello <b>world</b> < you\n", "", {}},
      {"think", "<think>\nHm.\nSo.\n</think>\n\nFour.<|im_end|>", "Four.", "Hm.\nSo.", {}},
      {"think", "  indented", "  indented", "", {}},
      {"hermes", "Let me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1, {\"b\": \"}\\\"{\"}]}}\n</tool_call>\n"
                 "<tool_call>\n{\"arguments\": {\"x\": 2} , \"name\": \"late\"}\n</tool_call><|im_end|>",
       "Let me see.", "", {{"add", "{\"a\": [1, {\"b\": \"}\\\"{\"}]}"}, {"late", "{\"x\": 2}"}}},
      {"hermes", "<think>a</think><tool_call>{\"name\": \"now\"}</tool_call>", "", "a", {{"now", "{}"}}},
      {"hermes", "<tool_call>no call</tool_call> then", "no call then", "", {}},
      {"qwen-xml", "<tool_call>\n<function=search>\n<parameter=query>\na \"b\"\n<c>\n</parameter>\n<parameter=n>\n5\n</parameter>\n"
                   "</function>\n</tool_call>",
       "", "", {{"search", "{\"query\": \"a \\\"b\\\"\\n<c>\", \"n\": 5}"}}},
      {"llama-json", "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "", "", {{"f", "{\"a\": 1}"}}},
      {"llama-json", "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}<|eom_id|>", "", "", {{"f", "{}"}}},
      {"llama-json", "The {\"name\": 1}", "The {\"name\": 1}", "", {}},
      {"pythonic", "[f(a=1, b='x)y', c=[True, None]), g()]", "", "",
       {{"f", "{\"a\": 1, \"b\": \"x)y\", \"c\": [true, null]}"}, {"g", "{}"}}},
      {"pythonic", "[1] is a citation", "[1] is a citation", "", {}},
      {"mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": \"é\"}, \"id\": \"abc\"}, {\"name\": \"g\", \"arguments\": {}}]</s>",
       "", "", {{"f", "{\"a\": \"é\"}"}, {"g", "{}"}}},
      {"mistral-args", "[THINK]t[/THINK]ok[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}</s>", "ok", "t",
       {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"harmony", "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant<|channel|>final<|message|>Hi!<|return|>", "Hi!",
       "Think.", {}},
      {"harmony", "<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary to=functions.add "
                  "<|constrain|>json<|message|>{\"a\": 2}<|call|>",
       "", "Need it.", {{"add", "{\"a\": 2}"}}},
      {"harmony", "<|channel|>commentary<|message|>First.<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>"
                  "{}<|call|>",
       "First.", "", {{"f", "{}"}}},
      {"deepseek-v3", "ok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n"
                      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
       "ok", "", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"deepseek-v3.1", "<think>x</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
                        "<｜tool▁calls▁end｜>",
       "", "x", {{"f", "{\"a\": 1}"}}},
      {"deepseek-dsml", "Go.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">12"
                        "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">12</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
                        "</｜DSML｜function_calls>",
       "Go.", "", {{"f", "{\"s\": \"12\", \"n\": 12}"}}},
      {"glm", "<think>t</think>\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x y</arg_value>\n<arg_key>b</arg_key>\n"
              "<arg_value>[1]</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>",
       "", "t", {{"f", "{\"a\": \"x y\", \"b\": [1]}"}, {"g", "{}"}}},
      {"kimi", "Hm<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>"
               "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
       "Hm", "", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"minimax", "<think>t</think>\n\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x</parameter>\n</invoke>\n"
                  "<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>[e~[",
       "", "t", {{"f", "{\"a\": \"x\"}"}, {"g", "{}"}}},
      {"gemma", "<|channel>thought\nhm\n<channel|>ok<|tool_call>call:f{a:<|\"|>x}y<|\"|>,b:[1,true],c:{<|\"|>k<|\"|>:2}}<tool_call|>",
       "ok", "hm", {{"f", "{\"a\": \"x}y\", \"b\": [1, true], \"c\": {\"k\": 2}}"}}},
      {"granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|end_of_text|>", "", "", {{"f", "{\"a\": 1}"}}},
      {"cohere", "<|START_THINKING|>t<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", "
                 "\"parameters\": {\"a\": 1}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>",
       "", "t", {{"f", "{\"a\": 1}"}}},
      {"cohere", "<|START_RESPONSE|>Hello.<|END_RESPONSE|><|END_OF_TURN_TOKEN|>", "Hello.", "", {}},
      {"command-r", "Hm.\nAction: ```json\n[\n    {\n        \"tool_name\": \"f\",\n        \"parameters\": {\"a\": \"```\"}\n    }\n]\n```<|END_OF_TURN_TOKEN|>", "Hm.", "",
       {{"f", "{\"a\": \"```\"}"}}},
      {"seed", "<seed:think>t</seed:think>\n<seed:tool_call>\n<function=f>\n<parameter=a>x\ny</parameter>\n<parameter=n>5</parameter>\n"
               "</function>\n</seed:tool_call><seed:eos>",
       "", "t", {{"f", "{\"a\": \"x\\ny\", \"n\": 5}"}}},
      {"minimax-m3", "<mm:think>t</mm:think>]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<a>x]<]minimax[>[</a>"
                     "]<]minimax[>[<l>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[<item>b]<]minimax[>[</item>]<]minimax[>[</l>"
                     "]<]minimax[>[<o>]<]minimax[>[<k>true]<]minimax[>[</k>]<]minimax[>[</o>]<]minimax[>[</invoke>\n"
                     "]<]minimax[>[<invoke name=\"g\">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>[e~[",
       "", "t", {{"f", "{\"a\": \"x\", \"l\": [1, \"b\"], \"o\": {\"k\": true}}"}, {"g", "{}"}}},
      {"apriel", "Hm.\n<tool_calls>[{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"1\"}, {\"name\": \"g\", \"arguments\": {}}]</tool_calls>\n<|end|>",
       "Hm.", "", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"functionary", "<function=f>{\"a\": 1}</function><function=g>{}</function><|eom_id|>", "", "", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"functionary", "<function=f>{\"a\": 1}</function>\nDone.<|eot_id|>", "Done.", "", {{"f", "{\"a\": 1}"}}},
      // The prompt ends with the first >>>.
      {"functionary-3.2", "f\n{\"a\": 1}>>>g\n{}<|eot_id|>", "", "", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"functionary-3.2", "all\nHello there.<|eot_id|>", "Hello there.", "", {}},
      {"functionary-3.2", "all\nI look.>>>f\n{\"a\": \">>>g\\n\"}>>>all\nDone.", "I look.Done.", "", {{"f", "{\"a\": \">>>g\\n\"}"}}},
      {"functionary-3.2", ">>>all\nHi", "Hi", "", {}},
      {"functionary-3.2", ">>>f\n{}", "", "", {{"f", "{}"}}},
      {"functionary-3.2", "all\n>>> print(1)\n1\n>>>x\nand >>>", ">>> print(1)\n1\n>>>x\nand >>>", "", {}},
      {"functionary-3.2", "Hello\nthere", "Hello\nthere", "", {}},
      {"functionary-3.2", "allow\nit", "allow\nit", "", {}},
      {"functionary-3.2", "all", "all", "", {}},
      {"apertus", "<|inner_prefix|>t<|inner_suffix|><|tools_prefix|>[{\"f\": {\"a\": 1}}, {\"g\": {}}]<|tools_suffix|>", "", "t",
       {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"gigachat", "Hm.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}<|message_sep|>\n\n", "Hm.", "",
       {{"f", "{\"a\": 1}"}}},
      {"gigachat-3.1", "<|function_call|>{\"name\": \"f\", \"arguments\": {\"a\": 1}}<|message_sep|>", "", "", {{"f", "{\"a\": 1}"}}},
      {"hunyuan", "<think:opensource>t</think:opensource>ok<tool_calls:opensource>\n<tool_call:opensource>f<tool_sep:opensource>\n"
                  "<arg_key:opensource>a</arg_key:opensource>\n<arg_value:opensource>x y</arg_value:opensource>\n</tool_call:opensource>\n"
                  "<tool_call:opensource>g<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource><｜hy_eos:opensource｜>",
       "ok", "t", {{"f", "{\"a\": \"x y\"}"}, {"g", "{}"}}},
      {"minicpm", "<think>t</think>\n<function name=\"f\"><param name=\"a\"><![CDATA[x < 1]]></param><param name=\"l\">['a', 1]</param></function>\n"
                  "<function name=\"g\"></function><|im_end|>",
       "", "t", {{"f", "{\"a\": \"x < 1\", \"l\": [\"a\", 1]}"}, {"g", "{}"}}},
      {"solar", "<|think|>t<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>f<|tool_call:args|>{\"a\": 1}<|tool_call:end|>"
                "<|tool_call:begin|>b2<|tool_call:name|>g<|tool_call:args|>{}<|tool_call:end|><|calls|>",
       "", "t", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"solar", "<|think|>t<|end|><|begin|>assistant<|content|>Hello.<|end|>", "Hello.", "t", {}},
      {"nemotron", "<think>t</think>\n\n<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}}]</TOOLCALL>\n<SPECIAL_12>",
       "", "t", {{"f", "{\"a\": 1}"}, {"g", "{}"}}},
      {"lfm", "<|tool_call_start|>[f(a=\"x\")]<|tool_call_end|>Done.<|im_end|>", "Done.", "", {{"f", "{\"a\": \"x\"}"}}},
  };
}

struct Read {
  Message message;
  std::string text, reasoning;
  std::vector<std::string> arguments;
  std::size_t ended = 0;
};

// The output given in pieces; what the deltas add up to.
Read read(const std::string& format, const std::vector<std::string_view>& pieces, OutputParserOptions options = {}, OutputEnd end = OutputEnd::whole) {
  auto parser = OutputParser::create(*find_output_format(format), std::move(options));
  REQUIRE(parser);
  Read out;
  const auto add = [&](const Result<std::vector<OutputDelta>>& deltas) {
    REQUIRE(deltas);
    for (const OutputDelta& delta : *deltas) {
      switch (delta.kind) {
        case OutputDelta::Kind::text: out.text += delta.text; break;
        case OutputDelta::Kind::reasoning: out.reasoning += delta.text; break;
        case OutputDelta::Kind::call_begin:
          CHECK(delta.call == out.arguments.size());
          out.arguments.emplace_back();
          break;
        case OutputDelta::Kind::call_arguments: out.arguments.at(delta.call) += delta.text; break;
        case OutputDelta::Kind::call_end: ++out.ended; break;
      }
    }
  };
  for (const std::string_view piece : pieces) add(parser->push(piece));
  add(parser->finish(end));
  out.message = *parser->message();
  return out;
}

bool same(const Read& a, const Read& b) {
  return a.text == b.text && a.reasoning == b.reasoning && a.arguments == b.arguments && a.ended == b.ended &&
         a.message.to_json() == b.message.to_json();
}

std::vector<std::string_view> bytes_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < text.size(); ++i) out.push_back(text.substr(i, 1));
  return out;
}

}  // namespace

TEST_CASE("every format is read: text, reasoning, names and arguments of calls") {
  for (const Sample& sample : samples()) {
    INFO(sample.format << ": " << sample.output);
    const Read whole = read(sample.format, {sample.output});
    CHECK(whole.message.content == sample.text);
    CHECK(whole.text == sample.text);
    CHECK(whole.message.reasoning == sample.reasoning);
    CHECK(whole.reasoning == sample.reasoning);
    REQUIRE(whole.message.tool_calls.size() == sample.calls.size());
    CHECK(whole.ended == sample.calls.size());
    for (std::size_t i = 0; i < sample.calls.size(); ++i) {
      CHECK(whole.message.tool_calls[i].name == sample.calls[i].first);
      CHECK(whole.message.tool_calls[i].arguments.dump() == sample.calls[i].second);
      CHECK(Json::parse(whole.arguments[i])->dump() == sample.calls[i].second);
    }
  }
}

TEST_CASE("every described format has a sample here") {
  const auto formats = output_formats();
  REQUIRE(formats);
  for (const OutputFormat& format : *formats) {
    INFO(format.name);
    bool found = false;
    for (const Sample& sample : samples()) found |= sample.format == format.name;
    CHECK(found);
  }
}

TEST_CASE("output cut at any byte, and byte by byte, gives what the whole gives") {
  for (const Sample& sample : samples()) {
    INFO(sample.format << ": " << sample.output);
    const std::string_view output = sample.output;
    const Read whole = read(sample.format, {output});
    CHECK(same(whole, read(sample.format, bytes_of(output))));
    for (std::size_t cut = 1; cut < output.size(); ++cut) {
      INFO("cut at " << cut);
      CHECK(same(whole, read(sample.format, {output.substr(0, cut), output.substr(cut)})));
    }
  }
}

TEST_CASE("a half-finished output gives what is there, however it was cut") {
  for (const Sample& sample : samples()) {
    const std::string_view output = sample.output;
    for (std::size_t end = 0; end < output.size(); end += unless_sanitized(1u, 3u)) {
      INFO(sample.format << ": " << output.substr(0, end));
      const Read whole = read(sample.format, {output.substr(0, end)});
      CHECK(same(whole, read(sample.format, bytes_of(output.substr(0, end)))));
      CHECK(whole.message.tool_calls.size() <= std::max<std::size_t>(sample.calls.size(), 1));
      CHECK(whole.ended <= whole.message.tool_calls.size());
    }
  }
  const Read half = read("hermes", {"ok <tool_call>{\"name\": \"f\", \"arguments\": {\"city\": \"Ro"});
  REQUIRE(half.message.tool_calls.size() == 1);
  CHECK(half.ended == 0);
  CHECK(half.message.tool_calls[0].name == "f");
  CHECK(*half.message.tool_calls[0].arguments.string() == "{\"city\": \"Ro");
}

TEST_CASE("an output that was cut anywhere shows no piece of a marker, nor of a call that was not begun") {
  const auto begins = [](std::string_view all, std::string_view part) {
    return all.starts_with(part.substr(0, part.find_last_not_of(" \t\r\n") + 1));  // white space in front of a marker is nobody's
  };
  for (const Sample& sample : samples()) {
    const std::string_view output = sample.output;
    std::size_t ended = 0;
    for (std::size_t end = 0; end <= output.size(); end += unless_sanitized(1u, 3u)) {
      const std::string_view part = output.substr(0, end);
      INFO(sample.format << ": " << part);
      const Read whole = read(sample.format, {part}, {}, OutputEnd::cut);
      CHECK(same(whole, read(sample.format, bytes_of(part), {}, OutputEnd::cut)));
      CHECK(whole.text == whole.message.content);
      CHECK(whole.reasoning == whole.message.reasoning);
      CHECK(begins(sample.text, whole.text));
      CHECK(begins(sample.reasoning, whole.reasoning));
      CHECK(whole.ended >= ended);  // a call that has ended stays so, wherever the text behind it is cut
      ended = whole.ended;
      REQUIRE(whole.arguments.size() <= sample.calls.size());
      for (std::size_t i = 0; i < whole.ended; ++i) CHECK(Json::parse(whole.arguments[i])->dump() == sample.calls[i].second);
    }
  }
  const Read closing = read("hermes", {"ok\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool"}, {}, OutputEnd::cut);
  CHECK(closing.message.content == "ok");
  CHECK(read("hermes", {"ok\n<tool"}, {}, OutputEnd::cut).message.content == "ok");
  CHECK(closing.ended == 1);
  const Read named = read("kimi", {"<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_"}, {}, OutputEnd::cut);
  CHECK(named.message.content.empty());
  CHECK(named.ended == 1);
  // Of one that is whole they are what the model wrote.
  CHECK(read("hermes", {"a <tool"}).message.content == "a <tool");
}

TEST_CASE("text and arguments stream: what cannot be a marker does not wait") {
  auto parser = OutputParser::create(*find_output_format("hermes"));
  REQUIRE(parser);
  CHECK(parser->push("Hello wor")->at(0).text == "Hello wor");
  CHECK(parser->push("ld <tool")->at(0).text == "ld");
  CHECK(parser->push("_call>{\"name\": \"f\", \"arguments\": ")->empty());
  const auto begun = *parser->push("{\"a\": 1");
  REQUIRE(begun.size() == 2);
  CHECK(begun[0].kind == OutputDelta::Kind::call_begin);
  CHECK(begun[0].name == "f");
  CHECK(begun[1].text == "{\"a\": 1");
}

TEST_CASE("random calls come back from the formats that write JSON") {
  std::mt19937 random(3);
  const auto word = [&] {
    constexpr const char* parts[] = {"a", "\"", "\\", "{", "}", "[", "]", "</tool_call", "<", ":", ",", "é", "\n", " ", "1"};
    std::string out;
    for (auto n = random() % 8; n > 0; --n) out += parts[random() % 15];
    return out;
  };
  for (int round = 0; round < 300; ++round) {
    Json arguments = Json::object();
    for (auto n = random() % 4; n > 0; --n) {
      const std::string key = "k" + std::to_string(n);
      if (random() % 2 == 0) arguments.set(key, word());
      else arguments.set(key, Json::Array{Json(word()), Json(std::int64_t{5}), Json(1.5), Json()});
    }
    const std::string json = arguments.dump();
    const std::pair<const char*, std::string> outputs[] = {
        {"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": " + json + "}\n</tool_call>"},
        {"mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": " + json + "}]"},
        {"mistral-args", "[TOOL_CALLS]f[ARGS]" + json},
        {"harmony", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>" + json + "<|call|>"},
        {"kimi", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>" + json +
                     "<|tool_call_end|><|tool_calls_section_end|>"},
        {"cohere", "<|START_ACTION|>[{\"tool_name\": \"f\", \"parameters\": " + json + "}]<|END_ACTION|>"},
    };
    for (const auto& [format, output] : outputs) {
      INFO(format << ": " << output);
      const Read got = read(format, bytes_of(output));
      REQUIRE(got.message.tool_calls.size() == 1);
      CHECK(got.message.tool_calls[0].name == "f");
      CHECK(got.message.tool_calls[0].arguments == arguments);
    }
  }
}

TEST_CASE("a parameter of type string stays one, whatever it looks like") {
  const Json tool = *Json::parse(R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object",
    "properties": {"s": {"type": "string"}, "n": {"type": "integer"}}}}})");
  const std::string_view output = "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>12</arg_value>\n<arg_key>n</arg_key>\n"
                                  "<arg_value>12</arg_value>\n</tool_call>";
  CHECK(read("glm", {output}, {.tools = {tool}}).message.tool_calls.at(0).arguments.dump() == R"({"s": "12", "n": 12})");
  CHECK(read("glm", {output}).message.tool_calls.at(0).arguments.dump() == R"({"s": 12, "n": 12})");
}

TEST_CASE("a parameter that is JSON may hold the marker that ends it, however the output is cut") {
  const Json tool = *Json::parse(R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"type": "object"}, "u": {"type": ["string", "null"]}}}}})");
  const std::string output = "<tool_call>\n<function=f>\n<parameter=o>\n{\"a\": \"}</parameter>\"}\n</parameter>\n"
                             "<parameter=u>\n\"\\\"</parameter>\"\n</parameter>\n</function>\n</tool_call>";
  const Read whole = read("qwen-xml", {output}, {.tools = {tool}});
  REQUIRE(whole.message.tool_calls.size() == 1);
  CHECK(whole.message.tool_calls[0].arguments.dump() == R"({"o": {"a": "}</parameter>"}, "u": "\"\\\"</parameter>\""})");
  CHECK(same(whole, read("qwen-xml", bytes_of(output), {.tools = {tool}})));
  // What is no JSON ends at the first marker.
  const std::string broken = "<tool_call>\n<function=f>\n<parameter=o>\n{oops\n</parameter>\n</function>\n</tool_call>";
  const Read rest = read("qwen-xml", {broken}, {.tools = {tool}});
  REQUIRE(rest.message.tool_calls.size() == 1);
  CHECK(rest.message.tool_calls[0].arguments.dump() == R"({"o": "{oops"})");
  CHECK(rest.ended == 1);
  CHECK(same(rest, read("qwen-xml", bytes_of(broken), {.tools = {tool}})));
}

TEST_CASE("a prompt that ends in <think> begins in reasoning") {
  const OutputFormat format = *find_output_format("hermes");
  CHECK(format.ends_in_reasoning("<|im_start|>assistant\n<think>\n"));
  CHECK_FALSE(format.ends_in_reasoning("<|im_start|>assistant\n"));
  const Read got = read("hermes", {"Well.</think>Yes."}, {.starts_in_reasoning = true});
  CHECK(got.message.reasoning == "Well.");
  CHECK(got.message.content == "Yes.");
}

TEST_CASE("the format is chosen by what the template writes") {
  const auto templates = shared_templates();
  if (templates.empty()) return skip("../shared/templates is not there");
  const std::pair<const char*, const char*> expected[] = {
      {"Qwen-Qwen3-0.6B.jinja", "hermes"}, {"Qwen3-Coder.jinja", "qwen-xml"}, {"Qwen3.5-4B.jinja", "qwen-xml"},
      {"meta-llama-Llama-3.1-8B-Instruct.jinja", "llama-json"}, {"openai-gpt-oss-120b.jinja", "harmony"},
      {"mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral"}, {"unsloth-mistral-Devstral-Small-2507.jinja", "mistral-args"},
      {"deepseek-ai-DeepSeek-V3.1.jinja", "deepseek-v3.1"}, {"deepseek-ai-DeepSeek-V3.2.jinja", "deepseek-dsml"},
      {"deepseek-ai-DeepSeek-V4.jinja", "deepseek-dsml"}, {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", "deepseek-v3"},
      {"GLM-4.6.jinja", "glm"}, {"Kimi-K2-Instruct.jinja", "kimi"}, {"MiniMax-M2.jinja", "minimax"},
      {"google-gemma-4-31B-it.jinja", "gemma"}, {"ibm-granite-granite-4.1.jinja", "hermes"},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja", "cohere"},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", "hermes"},
      {"MiniMax-M3.jinja", "minimax-m3"}, {"unsloth-Apriel-1.5.jinja", "apriel"}, {"Apriel-1.6-15b-Thinker-fixed.jinja", "apriel"},
      {"meetkai-functionary-medium-v3.1.jinja", "functionary"}, {"Apertus-8B-Instruct.jinja", "apertus"},
      {"GigaChat3-10B-A1.8B.jinja", "gigachat"}, {"GigaChat3.1-10B-A1.8B.jinja", "gigachat-3.1"}, {"tencent-Hy3.jinja", "hunyuan"},
      {"openbmb-MiniCPM5-1B.jinja", "minicpm"},
  };
  for (const auto& [name, format] : expected) {
    INFO(name);
    for (const NamedTemplate& one : templates) {
      if (one.name == name) CHECK(choose_output_format(*ChatTemplate::parse(one.source))->name == format);
    }
  }
  CHECK(choose_output_format(*ChatTemplate::parse("{{ messages }}"))->name == "think");
}

}  // namespace test_output_parser
