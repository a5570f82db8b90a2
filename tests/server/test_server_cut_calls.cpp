// Answers that are cut within a tool call: clients see the call as far as it goes, and no piece of the markers around it.
#include <fmt/format.h>

#include "server/http_client.hpp"

namespace test_server_cut_calls {

using namespace tessera::tests::server;
using tessera::Json;

namespace {

// What a client has of an answer.
struct Got {
  std::string content, name, arguments, reason;
  std::size_t calls = 0;
  bool operator==(const Got&) const = default;
};

std::string text_or_empty(const Json& json, const std::vector<std::string>& path) {
  const Json value = at(json, path);
  return value.string() != nullptr ? *value.string() : std::string();
}

Got whole(const RunningServer& server, const std::string& body) {
  const Response response = server.post("/v1/chat/completions", "{" + body + "}");
  INFO(response.body);
  REQUIRE(response.status == 200);
  const Json message = at(response.json(), {"choices", "0", "message"}), calls = at(message, {"tool_calls"});
  return {.content = text_or_empty(message, {"content"}),
          .name = text_or_empty(calls, {"0", "function", "name"}),
          .arguments = text_or_empty(calls, {"0", "function", "arguments"}),
          .reason = text_at(response.json(), {"choices", "0", "finish_reason"}),
          .calls = calls.elements() != nullptr ? calls.elements()->size() : 0};
}

Got streamed(const RunningServer& server, const std::string& body) {
  Connection connection(server.port());
  connection.send_request("POST", "/v1/chat/completions", {}, "{" + body + R"(, "stream": true})");
  REQUIRE(connection.receive_head().status == 200);
  Got got;
  for (const ServerEvent& event : connection.all_events()) {
    if (event.data == "[DONE]") break;
    const Json choice = at(event.json(), {"choices", "0"});
    got.content += text_or_empty(choice, {"delta", "content"});
    got.reason += text_or_empty(choice, {"finish_reason"});
    if (at(choice, {"delta", "tool_calls"}).elements() == nullptr) continue;
    got.name += text_or_empty(choice, {"delta", "tool_calls", "0", "function", "name"});
    got.arguments += text_or_empty(choice, {"delta", "tool_calls", "0", "function", "arguments"});
    got.calls = static_cast<std::size_t>(number_at(choice, {"delta", "tool_calls", "0", "index"})) + 1;
  }
  return got;
}

}  // namespace

TEST_CASE("a call that is cut anywhere leaves no piece of its markers, streamed or not", "[server]") {
  if (lacks_server()) return;
  const RunningServer server({"--no-log"});
  const std::string request = R"("messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "tool_choice": "required", "parallel_tool_calls": false,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}}}}])";
  const Got all = whole(server, request + R"(, "max_tokens": 200)");
  REQUIRE(all.reason == "tool_calls");
  CHECK(all.content.empty());
  std::size_t cut = 0, ended = 0;
  for (int most = 1; most < 200; ++most) {
    const std::string body = request + fmt::format(R"(, "max_tokens": {})", most);
    const Got got = whole(server, body);
    INFO(most << ": " << got.content << " | " << got.arguments);
    CHECK(got == streamed(server, body));
    CHECK(got.content.find_first_not_of(" \n") == std::string::npos);
    CHECK(all.arguments.starts_with(got.arguments));
    if (got.reason != "length") break;
    ++cut;
    ended += got.arguments == all.arguments ? 1 : 0;
  }
  CHECK(cut > 10);
  CHECK(ended > 0);  // within the closing marker
}

}  // namespace test_server_cut_calls
