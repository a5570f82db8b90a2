// A conversation as hosts and the common HTTP APIs know it: messages with roles, tool calls and the tools' answers, reasoning, and the
// available tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/json/json.hpp>

namespace tessera {

// One part of a message's content. If `type` is "text", `text` is the content. The template decides what other types ("image", "audio")
// mean.
struct ContentPart {
  std::string type = "text";
  std::string text{};
  Json::Object extra{};  // further keys, which templates may read
};

struct ToolCall {
  std::string id{};  // "call_1"; may be empty
  std::string name{};  // name of the function
  Json arguments{};  // an object. A text is possible too, but templates that want an object refuse it
};

struct Message {
  std::string role;  // "system", "user", "assistant", "tool", or another role that the template knows
  std::string content{};
  std::vector<ContentPart> parts{};  // if not empty: the content, instead of `content`
  std::string reasoning{};           // the assistant's thoughts before its answer
  std::vector<ToolCall> tool_calls{};
  std::string tool_call_id{};  // for a tool's answer: id of the call that it answers
  std::string name{};          // name of the tool that answers, or of the speaker
  Json::Object extra{};        // further keys; a key with a name from above overrides that field

  // Reads {"role": ..., "content": ...} as transformers and the HTTP APIs write it. Content that is a list of texts only becomes one text.
  // tool_calls of null or [] count as absent. A call's arguments may be an object or JSON text; the text is parsed, and "" becomes an empty
  // object. Keys for which there is no field above go to `extra`. So does a known key whose value does not fit its field (content null, for
  // example).
  // Errors: invalid_argument, `json` is no object or has no role, or a call's arguments are no object (the place names the call).
  [[nodiscard]] static Result<Message> from_json(const Json& json) noexcept;
  // Returns the message as templates read it. Empty fields are left out. Exception: empty content is written as "".
  [[nodiscard]] Json to_json() const;
};

// Everything that a template reads: messages, tools, and arguments of the template.
//
//   ChatRequest request{.messages = {{.role = "system", .content = "Be brief."}, {.role = "user", .content = "Hi"}}};
//   auto tool = Json::parse(R"({"type": "function", "function": {"name": "now", "parameters": {}}})");
//   request.tools.push_back(*tool);
//   request.arguments.emplace_back("enable_thinking", false);
struct ChatRequest {
  std::vector<Message> messages;
  std::vector<Json> tools{};  // {"type": "function", "function": {"name", "description", "parameters": JSON Schema}}
  bool add_generation_prompt = true;
  Json::Object arguments{};  // arguments of the template: enable_thinking, reasoning_effort, documents, ...

  // Reads {"messages": [...], "tools": [...], "add_generation_prompt": true, ...}. Every further key becomes an argument of the
  // template. Errors: invalid_argument; the place names the message by its index.
  [[nodiscard]] static Result<ChatRequest> from_json(const Json& json) noexcept;
  // Returns the variables of a template. Without tools, `tools` is null.
  [[nodiscard]] Json to_json() const;
};

}  // namespace tessera
