// Custom tools of chat completions: their calls are a text, which a pattern or Lark may hold.
#include <regex>

#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_custom_tools {

using namespace tessera::tests;
using namespace tessera::tests::server;
using tessera::Json;

namespace {

const std::string kTurns = R"("messages": [{"role": "user", "content": "go"}], "max_tokens": 120, "temperature": 1, "seed": 3, "parallel_tool_calls": false)";

std::string custom(const std::string& name, const std::string& format) {
  return R"({"type": "custom", "custom": {"name": ")" + name + R"(", "description": "Runs it")" + (format.empty() ? "" : R"(, "format": )" + format) + "}}";
}
std::string grammar(const std::string& syntax, const std::string& definition) {
  return R"({"type": "grammar", "grammar": {"syntax": ")" + syntax + R"(", "definition": )" + Json(definition).dump() + "}}";
}

}  // namespace

TEST_CASE("a chat completion calls a custom tool with a text, which its grammar holds", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  for (const auto& [format, pattern] : {std::pair(grammar("regex", "(red|blue)[0-9]{2}"), "(red|blue)[0-9]{2}"), std::pair(grammar("lark", "start: \"ab\" NUMBER\nNUMBER: /[0-9]{3}/\n"), "ab[0-9]{3}")}) {
    const std::string body = "{" + kTurns + R"(, "tool_choice": {"type": "custom", "custom": {"name": "run"}}, "tools": [)" + custom("run", format) +
                             R"(, {"type": "function", "function": {"name": "other"}}])";
    const Response whole = server.post("/v1/chat/completions", body + "}");
    INFO(whole.body);
    REQUIRE(whole.status == 200);
    const Json call = at(whole.json(), {"choices", "0", "message", "tool_calls", "0"});
    CHECK(text_at(call, {"type"}) == "custom");
    CHECK(text_at(call, {"custom", "name"}) == "run");
    CHECK(call.find("function") == nullptr);
    const std::string input = text_at(call, {"custom", "input"});
    CHECK(std::regex_match(input, std::regex(pattern)));
    CHECK(text_at(whole.json(), {"choices", "0", "finish_reason"}) == "tool_calls");
    // Streamed: the name, and the text when it is whole.
    Connection connection(server.port());
    connection.send_request("POST", "/v1/chat/completions", {}, body + R"(, "stream": true})");
    REQUIRE(connection.receive_head().status == 200);
    std::string names, inputs;
    for (const ServerEvent& event : connection.all_events()) {
      if (event.data == "[DONE]") continue;
      const Json delta = at(event.json(), {"choices", "0", "delta", "tool_calls", "0"});
      if (delta.is_null()) continue;
      CHECK(delta.find("function") == nullptr);
      if (delta.find("id") != nullptr) names += text_at(delta, {"custom", "name"});
      inputs += text_at(delta, {"custom", "input"});
    }
    CHECK(names == "run");
    CHECK(inputs == input);
  }
}

TEST_CASE("custom calls in the history and allowed custom tools are read, what no grammar can hold is a 400", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  const auto with_history = [&](const std::string& call) {
    return server.post("/v1/chat/completions", R"({"max_tokens": 2, "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": null, "tool_calls": [)" + call +
                                                 R"(]}, {"role": "tool", "tool_call_id": "c1", "content": "done"}], "tools": [)" + custom("run", "") + "]}");
  };
  const Response read = with_history(R"({"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}})");
  INFO(read.body);
  CHECK(read.status == 200);
  CHECK(text_at(with_history(R"({"id": "c1", "type": "custom", "function": {"name": "run"}})").json(), {"error", "param"}) == "messages[1].tool_calls[0].custom");
  const Response allowed = server.post("/v1/chat/completions", "{" + kTurns + R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
    {"type": "custom", "custom": {"name": "run"}}]}}, "tools": [{"type": "function", "function": {"name": "other"}}, )" + custom("run", grammar("regex", "x")) + "]}");
  INFO(allowed.body);
  REQUIRE(allowed.status == 200);
  CHECK(text_at(allowed.json(), {"choices", "0", "message", "tool_calls", "0", "custom", "input"}) == "x");
  const auto param_of = [&](const std::string& tool) {
    const Response refused = server.post("/v1/chat/completions", "{" + kTurns + R"(, "tools": [)" + tool + "]}");
    CHECK(refused.status == 400);
    return text_at(refused.json(), {"error", "param"});
  };
  CHECK(param_of(R"({"type": "custom"})") == "tools[0].custom");
  CHECK(param_of(custom("run", R"({"type": "grammar"})")) == "tools[0].custom.format.grammar");
  CHECK(param_of(custom("run", grammar("lark", "start: \"(\" start \")\" | \"x\"\n"))) == "tools[0].custom.format.grammar.definition");
  CHECK(param_of(custom("run", grammar("peg", "x"))) == "tools[0].custom.format.grammar.syntax");
}

}  // namespace test_server_custom_tools
