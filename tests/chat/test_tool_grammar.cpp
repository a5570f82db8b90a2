// The grammars of the output formats: what models write is allowed, what the grammar allows is read, and nothing else.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include <tessera/extend/chat/output_parser.hpp>
#include <tessera/extend/chat/tool_grammar.hpp>
#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/grammar/matcher.hpp>

#include "catch.hpp"
#include "chat/written_calls.hpp"

namespace test_tool_grammar {

using namespace tessera;
using namespace tessera::tests;

namespace {

const std::string kTools = R"([
  {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer", "description": "one"}, "b": {"type": "integer"}}, "required": ["a"],
    "additionalProperties": false}}},
  {"type": "function", "function": {"name": "find_it", "parameters": {"type": "object",
    "properties": {"text": {"type": "string"}, "kind": {"enum": ["x", "y z"], "type": "string"},
                   "deep": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                   "opts": {"type": "object", "properties": {"on": {"type": "boolean"}, "name": {"type": "string"}},
                            "required": ["on"], "additionalProperties": false}},
    "required": ["text"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "now"}}
])";

std::vector<Json> tools() { return *Json::parse(kTools)->elements(); }

std::string random_text(std::mt19937& random) {
  constexpr const char* parts[] = {"a", "\"", "\\", "{", "}", "[", "]", "<", ">", ":", ",", "é", " b", "\nc", "1", "'", "(", ")", "</", "|"};
  std::string out;
  for (auto n = random() % 8; n > 0; --n) out += parts[random() % std::size(parts)];
  return "t" + out + "t";  // line ends at a value's borders are the format's
}

Call random_call(std::mt19937& random) {
  Json arguments = Json::object();
  const auto number = [&] { return Json(static_cast<std::int64_t>(random() % 2000) - 1000); };
  switch (random() % 3) {
    case 0:
      arguments.set("a", number());
      if (random() % 2 == 0) arguments.set("b", number());
      return {"add", arguments};
    case 1: {
      arguments.set("text", random_text(random));
      if (random() % 2 == 0) arguments.set("kind", random() % 2 == 0 ? "x" : "y z");
      if (random() % 2 == 0) {
        Json::Array list;
        for (auto n = random() % 4; n > 0; --n) list.emplace_back(random_text(random));
        arguments.set("deep", std::move(list));
      }
      if (random() % 2 == 0) {
        Json opts = Json::object();
        opts.set("on", random() % 2 == 0);
        if (random() % 2 == 0) opts.set("name", random_text(random));
        arguments.set("opts", std::move(opts));
      }
      return {"find_it", arguments};
    }
    default: return {"now", arguments};
  }
}

CompiledGrammar compiled(const OutputFormat& format, const ToolGrammarOptions& options = {}) {
  static const GrammarVocabulary words = vocabulary();
  auto grammar = tool_grammar(format, tools(), options);
  if (!grammar) FAIL(format.name << ": " << grammar.error().text());
  auto out = CompiledGrammar::create(*grammar, words);
  if (!out) FAIL(format.name << ": " << out.error().text());
  return *out;
}

bool accepts(const CompiledGrammar& grammar, const std::string& text) {
  const auto check = grammar.check(text);
  REQUIRE(check);
  if (!check->accepted) UNSCOPED_INFO("at byte " << check->at << " expected " << check->expected);
  return check->accepted;
}

Message parsed(const OutputFormat& format, const std::string& text, bool in_reasoning = false) {
  auto parser = OutputParser::create(format, {.starts_in_reasoning = in_reasoning, .tools = tools()});
  REQUIRE(parser->push(text));
  REQUIRE(parser->finish());
  return *parser->message();
}

}  // namespace

TEST_CASE("random calls of every format are allowed, and come back from the parser") {
  std::mt19937 random(11);
  for (const OutputFormat& format : formats_with_calls()) {
    const CompiledGrammar grammar = compiled(format);
    for (int round = 0; round < 60; ++round) {
      std::vector<Call> calls(format.name == "harmony" || format.name.starts_with("gigachat") ? 1 : 1 + random() % 3);
      for (Call& call : calls) call = random_call(random);
      const std::string text = written(format.name, calls);
      INFO(format.name << ": " << text);
      CHECK(accepts(grammar, text));
      const Message message = parsed(format, text);
      REQUIRE(message.tool_calls.size() == calls.size());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        CHECK(message.tool_calls[i].name == calls[i].name);
        CHECK(message.tool_calls[i].arguments.dump() == calls[i].arguments.dump());
      }
    }
  }
}

TEST_CASE("broken calls are refused in every format") {
  for (const OutputFormat& format : formats_with_calls()) {
    const CompiledGrammar grammar = compiled(format);
    const auto call = [&](const char* name, const char* arguments) { return written(format.name, {{name, *Json::parse(arguments)}}); };
    INFO(format.name);
    CHECK(accepts(grammar, call("add", R"({"a": 1})")));
    CHECK(accepts(grammar, call("find_it", R"({"text": "q"})")));
    CHECK_FALSE(accepts(grammar, call("subtract", R"({"a": 1})")));
    CHECK_FALSE(accepts(grammar, call("add", R"({"b": 1})")));
    CHECK_FALSE(accepts(grammar, call("add", R"({"a": "one"})")));
    CHECK_FALSE(accepts(grammar, call("add", R"({"a": 1.5})")));
    CHECK_FALSE(accepts(grammar, call("find_it", R"({"text": "q", "kind": "z"})")));
    CHECK_FALSE(accepts(grammar, call("find_it", R"({"text": "q", "deep": ["1", "2", "3", "4"]})")));
    CHECK_FALSE(accepts(grammar, call("find_it", R"({"text": "q", "opts": {"name": "n"}})")));
    CHECK_FALSE(accepts(grammar, call("find_it", R"({"text": "q", "else": 1})")));
    CHECK_FALSE(accepts(grammar, call("now", R"({"a": 1})")));
    CHECK_FALSE(accepts(grammar, "I would rather talk."));
    CHECK_FALSE(accepts(grammar, ""));
    const std::string whole = call("find_it", R"({"text": "q", "opts": {"on": true}})");
    for (std::size_t cut = 1; cut + 16 < whole.size(); ++cut) CHECK_FALSE(grammar.check(whole.substr(0, cut))->accepted);
  }
}

TEST_CASE("whatever a grammar allows, its parser reads as calls of the tools") {
  std::mt19937 random(12);
  const std::vector<Json> all = tools();
  for (const OutputFormat& format : formats_with_calls()) {
    const bool in_reasoning = random() % 2 == 0 && format.ends_in_reasoning("<think>");
    const CompiledGrammar grammar = compiled(format, {.max_calls = 2, .starts_in_reasoning = in_reasoning});
    const GrammarVocabulary& words = grammar.vocabulary();
    for (int round = 0; round < 12; ++round) {
      auto matcher = Matcher::create(grammar);
      REQUIRE(matcher);
      std::string text;
      while (!matcher->ended()) {
        const auto mask = matcher->mask();
        if (!mask) FAIL(format.name << ": " << text << ": " << mask.error().text());
        // Mostly what a model has a token for, so that texts come to their end.
        std::vector<Token> bytes, longer, parts;
        for (Token token = 0; token < static_cast<Token>(words.size()); ++token) {
          const auto word = static_cast<std::size_t>(token);
          if (((*mask)[word / 64] >> (word % 64) & 1) == 0) continue;
          const std::string_view piece = words.bytes(token);
          if (piece.size() != 1) longer.push_back(token);
          else if (piece[0] >= ' ' || piece[0] == '\n') bytes.push_back(token);
          else parts.push_back(token);  // of a character
        }
        const auto& from = bytes.empty() && longer.empty() ? parts
                           : bytes.empty() || (!longer.empty() && random() % 3 != 0) ? longer
                                                                                             : bytes;
        REQUIRE_FALSE(from.empty());
        const Token token = from[random() % from.size()];
        REQUIRE(matcher->accept(token));
        text += words.bytes(token);
        if (text.size() > 20000) FAIL(format.name << " does not end: " << text);
      }
      INFO(format.name << ": " << text);
      const Message message = parsed(format, text, in_reasoning);
      CHECK(message.content.empty());
      REQUIRE_FALSE(message.tool_calls.empty());
      CHECK(message.tool_calls.size() <= 2);
      for (const ToolCall& call : message.tool_calls) {
        REQUIRE(call.arguments.members() != nullptr);
        const auto has = [&](const char* key) { return call.arguments.find(key) != nullptr; };
        if (call.name == "add") {
          REQUIRE(has("a"));
          const Json* a = call.arguments.find("a");
          CHECK(a->type() == Json::Type::number);
        } else if (call.name == "find_it") {
          REQUIRE(has("text"));
          CHECK(call.arguments.find("text")->string() != nullptr);
          if (has("kind")) CHECK((*call.arguments.find("kind") == Json("x") || *call.arguments.find("kind") == Json("y z")));
          if (has("opts")) CHECK(call.arguments.find("opts")->find("on")->boolean() != nullptr);
        } else {
          CHECK(call.name == "now");
          CHECK(call.arguments.members()->empty());
        }
      }
    }
  }
}

TEST_CASE("functionary 3.2: behind the prompt's mark stands a recipient, and a mark in a text that names no tool is text") {
  const OutputFormat format = *find_output_format("functionary-3.2");
  const CompiledGrammar may = compiled(format, {.use = ToolUse::automatic});
  CHECK(accepts(may, "all\nHello.\n>>> print(1)\n>>>x"));
  CHECK(accepts(may, "all\nI look.>>>add\n{\"a\": 1}>>>now\n{}"));
  CHECK(accepts(may, "add\n{\"a\": 1}"));
  CHECK_FALSE(accepts(may, "Hello."));
  CHECK_FALSE(accepts(may, "all\nI look.>>>add\n{\"b\": 1}"));
  CHECK_FALSE(accepts(may, ">>>add\n{\"a\": 1}"));  // the prompt has the mark
  const CompiledGrammar must = compiled(format, {.use = ToolUse::after_text, .max_calls = 1});
  CHECK(accepts(must, "all\nI look.>>>add\n{\"a\": 1}"));
  CHECK_FALSE(accepts(must, "all\nI look."));
  CHECK_FALSE(accepts(must, "all\nI look.>>>now\n{}>>>now\n{}"));
}

TEST_CASE("one tool, one call, text in front, or no call at all, as it is asked for") {
  const OutputFormat hermes = *find_output_format("hermes");
  const std::string add = "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>";
  const std::string now = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
  CHECK(accepts(compiled(hermes, {.name = "add"}), add));
  CHECK_FALSE(accepts(compiled(hermes, {.name = "add"}), now));
  CHECK(accepts(compiled(hermes), add + now));
  CHECK_FALSE(accepts(compiled(hermes, {.max_calls = 1}), add + now));
  CHECK_FALSE(accepts(compiled(hermes), "Let me see. " + add));
  CHECK(accepts(compiled(hermes, {.use = ToolUse::after_text}), "Let me see. " + add));
  CHECK_FALSE(accepts(compiled(hermes, {.use = ToolUse::after_text}), "Let me see."));
  CHECK(accepts(compiled(hermes, {.use = ToolUse::automatic}), "Let me see."));
  CHECK(accepts(compiled(hermes, {.use = ToolUse::automatic}), "Let me see. " + add));
  CHECK_FALSE(accepts(compiled(hermes, {.use = ToolUse::automatic}), "Let me see. <tool_call>{\"name\": \"sub"));
  CHECK(accepts(compiled(hermes, {.starts_in_reasoning = true}), "Hm.</think>\n\n" + add));
  // What stands in reasoning that the prompt has begun is no call.
  for (const ToolUse use : {ToolUse::after_text, ToolUse::automatic}) {
    const CompiledGrammar thinking = compiled(hermes, {.use = use, .starts_in_reasoning = true});
    CHECK(accepts(thinking, "Hm.</think>\n\n" + add));
    CHECK(!accepts(thinking, add));
    CHECK(accepts(thinking, "So <tool_call> it is.</think>" + add));
  }
  CHECK_FALSE(accepts(compiled(hermes), "Hm.</think>" + add));
  CHECK(accepts(compiled(hermes), "<think>\nHm.</think>\n" + add));
  CHECK_FALSE(accepts(compiled(hermes, {.use = ToolUse::at_once}), "<think>\nHm.</think>\n" + add));
  CHECK(accepts(compiled(hermes, {.use = ToolUse::at_once}), add));
  const OutputFormat llama = *find_output_format("llama-json");
  CHECK(accepts(compiled(llama, {.use = ToolUse::automatic}), "{\"name\": \"Tim\"}"));
  CHECK(accepts(compiled(llama), "{\"name\": \"now\", \"parameters\": {}}"));
  CHECK_FALSE(accepts(compiled(llama), "{ \"name\": \"now\", \"parameters\": {}}"));  // which its parser takes for text
}

TEST_CASE("what cannot be held is told, by its path; or left out where that is asked for") {
  const auto made = [](const char* format, const char* schema, JsonUnsupported unsupported = JsonUnsupported::refuse) {
    Json function = Json::object(), tool = Json::object();
    function.set("name", "f");
    function.set("parameters", *Json::parse(schema));
    tool.set("function", std::move(function));
    return tool_grammar(*find_output_format(format), std::vector<Json>{tool},
                        {.json = {.space = JsonSpace::blank, .unsupported = unsupported}});
  };
  const char* pattern = R"({"properties": {"s": {"type": "string", "pattern": "^a+$"}}})";
  CHECK(made("hermes", pattern));
  for (const char* format : {"qwen-xml", "glm"}) CHECK(made(format, pattern));  // strings that stand as they are
  for (const char* format : {"pythonic", "gemma"}) {
    INFO(format);
    const auto refused = made(format, pattern);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::unsupported);
    CHECK(refused.error().place() == "/properties/s/pattern");
    CHECK(made(format, pattern, JsonUnsupported::ignore));
    CHECK_FALSE(made(format, R"({"required": ["x"]})"));
  }
  const char* nested = R"({"properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}}})";
  for (const char* format : {"hermes", "qwen-xml", "pythonic", "gemma"}) CHECK(made(format, nested));
  const char* itself = R"({"properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "object", "properties": {"x": {"$ref": "#/$defs/P"}}}}})";
  CHECK_FALSE(made("gemma", itself));
  CHECK(made("hermes", itself));
  CHECK_FALSE(made("pythonic", R"({"properties": {"not a name": {"type": "number"}}})"));
  const Json odd = *Json::parse(R"([{"name": "get-weather>"}])");
  for (const char* format : {"pythonic", "qwen-xml"}) {
    CHECK(tool_grammar(*find_output_format(format), *odd.elements()).error().code() == ErrorCode::unsupported);
  }
  CHECK(tool_grammar(*find_output_format("hermes"), *odd.elements()));
  CHECK(tool_grammar(*find_output_format("hermes"), {}).error().code() == ErrorCode::invalid_argument);
  CHECK(tool_grammar(*find_output_format("hermes"), tools(), {.name = "sub"}).error().code() == ErrorCode::not_found);
  CHECK(tool_grammar(*find_output_format("think"), tools()).error().code() == ErrorCode::unsupported);
  CHECK_FALSE(tool_grammar(*find_output_format("hermes"), std::vector<Json>{Json("x")}));
}

TEST_CASE("schemas that multiply end soon") {
  std::string optional = "{\"properties\": {";
  for (int i = 0; i < 3000; ++i) {
    optional += (i > 0 ? ", \"p" : "\"p") + std::to_string(i) + "\": {\"type\": \"integer\"}";
  }
  optional += "}}";
  std::string options;
  for (int i = 0; i < 20; ++i) options += std::string(i > 0 ? ", " : "") + "{\"$ref\": \"#/$defs/P\"}";
  const std::string itself = "{\"properties\": {\"p\": {\"$ref\": \"#/$defs/P\"}}, \"$defs\": {\"P\": {\"anyOf\": [" + options + "]}}}";
  std::string deep = "{\"type\": \"integer\"}";
  for (int i = 0; i < 90; ++i) deep = "{\"type\": \"array\", \"items\": " + deep + "}";
  deep = "{\"properties\": {\"p\": " + deep + "}}";
  for (const std::string& schema : {optional, itself, deep}) {
    Json tool = Json::object();
    tool.set("name", "f");
    tool.set("parameters", *Json::parse(schema));
    for (const char* format : {"hermes", "qwen-xml", "pythonic", "gemma"}) {
      INFO(format << ": " << schema.substr(0, 60));
      const auto grammar = tool_grammar(*find_output_format(format), std::vector<Json>{tool});
      if (grammar) static_cast<void>(CompiledGrammar::create(*grammar, vocabulary()));
      else CHECK(grammar.error().code() != ErrorCode::internal);
    }
  }
}

TEST_CASE("control tokens that markers are made of can be drawn, and others cannot") {
  const std::string file = std::string(TESSERA_SHARED_DIR) + "/tokenizers/ggml-vocab-phi-3.gguf";
  if (!std::filesystem::exists(file)) return skip("../shared/tokenizers is not there");
  const auto tokenizer = Tokenizer::from_settings(ModelFile::open(file)->settings());
  REQUIRE(tokenizer);
  OutputFormat format = *find_output_format("hermes");
  format.regions.back().open = {"<|user|>\n"};
  const auto words = tool_vocabulary(*tokenizer, format);
  REQUIRE(words);
  CHECK(words->bytes(*tokenizer->find("<|user|>")) == "<|user|>");
  CHECK(words->bytes(*tokenizer->find("<|system|>")).empty());
  CHECK(words->bytes(*tokenizer->find("<|end|>")).empty());
  const auto grammar = tool_grammar(format, tools(), {.use = ToolUse::at_once});
  REQUIRE(grammar);
  auto matcher = Matcher::create(*CompiledGrammar::create(*grammar, *words));
  REQUIRE(matcher);
  CHECK(matcher->accept(*tokenizer->find("<|user|>")));
}

}  // namespace test_tool_grammar
